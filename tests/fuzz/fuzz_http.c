/* Any bytes as what a client sends, over a socket pair. A byte 0xff is a pause in which the
 * server does what there is to do; 0xfe lets it reply to what it kept; 0xfd half-closes. What
 * comes back is whole replies with statuses that we give, no request is answered twice, and
 * when the client has left nothing stays in the books. */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "support/http_rig.h"

enum { PAUSE = 0xff, REPLY = 0xfe, HALF_CLOSE = 0xfd, ROOM = 1 << 18 };

static http_rig *open_rig(void)
{
    http_rig *rig = calloc(1, sizeof *rig);
    FUZZ_CHECK(rig);
    (void)signal(SIGPIPE, SIG_IGN);
    FUZZ_CHECK(http_rig_open(rig, NULL));
    return rig;
}

static void reply_kept(http_rig *rig)
{
    const http_answer answer = {
        .status = 200, .type = "text/plain", .body = "x", .bytes = 1};
    while (rig->num_kept > 0) {
        http_request *request = rig->kept[--rig->num_kept];
        if (strcmp(http_request_head(request)->path, "/stream") == 0) {
            (void)http_reply_add(request, "x", 1);
            http_reply_end(request);
        } else {
            http_reply(request, &answer);
        }
    }
}

/* What the socket does not take is lost, as on a connection that breaks. */
static void play(http_rig *rig, int file, const uint8_t *data, size_t num_bytes)
{
    size_t begin = 0;
    for (size_t i = 0; i <= num_bytes; i++) {
        bool is_end = i == num_bytes;
        if (!is_end && data[i] < HALF_CLOSE) {
            continue;
        }
        (void)!send(file, data + begin, i - begin, MSG_NOSIGNAL);
        begin = i + 1;
        http_rig_turn(rig);
        if (!is_end && data[i] == REPLY) {
            reply_kept(rig);
        } else if (!is_end && data[i] == HALF_CLOSE) {
            (void)shutdown(file, SHUT_WR);
        }
        http_rig_turn(rig);
    }
}

/* No body of ours looks like a first line. */
static int count_replies(const char *text)
{
    int num = 0;
    for (const char *at = strstr(text, "HTTP/1.1 "); at; at = strstr(at + 1, "HTTP/1.1 ")) {
        num += at[9] >= '2' && at[9] <= '5' && at[12] == ' ';
    }
    return num;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t num_bytes)
{
    static http_rig *rig;
    static char text[ROOM];
    bool is_ended = false;
    rig = rig ? rig : open_rig();
    rig->num_requests = rig->num_refused = 0;
    int file = http_rig_connect(rig);
    FUZZ_CHECK(file >= 0);
    play(rig, file, data, num_bytes);
    reply_kept(rig);
    http_rig_turn(rig);
    size_t num = http_rig_receive(file, text, sizeof text, &is_ended);
    FUZZ_CHECK(count_replies(text) <= rig->num_requests + rig->num_refused);
    FUZZ_CHECK(num == 0 || strncmp(text, "HTTP/1.1 ", 9) == 0);
    (void)close(file);
    http_rig_turn(rig);
    FUZZ_CHECK(rig->counts.connections_open == 0 && rig->counts.requests_open == 0);
    FUZZ_CHECK(rig->num_kept == 0 && http_rig_is_clean(rig));
    return 0;
}
