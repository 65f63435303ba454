/* read.c - a head, then a body, from what has come in; each limit is checked before anything
 * is kept. */
#include <string.h>

#include "base/clock.h"
#include "base/ledger.h"
#include "server/http/state.h"

enum { MAX_CHUNK_LINE = 256, MAX_TRAILER_LINES = 32 };

void http_request_free(http_connection *self)
{
    http_request *request = self->request;
    if (request) {
        byte_buffer_free(&request->body);
        mla_memory_give(self->server->loop->context, MLA_SPACE_HOST, MLA_FOR_SERVER,
                        sizeof *request, request);
        self->request = NULL;
        api_uncount(&self->server->options.counts->requests_open, 1);
    }
}

static bool begin_request(http_connection *self)
{
    http_server *server = self->server;
    void *taken = NULL;
    if (mla_memory_take(server->loop->context, MLA_SPACE_HOST, MLA_FOR_SERVER,
                        sizeof(http_request), _Alignof(http_request), &taken,
                        NULL) != MLA_OK) {
        return false;
    }
    self->request = taken;
    *self->request =
        (http_request){.connection = self, .body = {.context = server->loop->context}};
    api_count(&server->options.counts->requests, 1);
    api_count(&server->options.counts->requests_open, 1);
    return true;
}

/* true: that was a step forward, as everything that is refused is. */
static bool refuse(http_connection *self, int status, const char *text)
{
    http_refuse(self, status, text);
    return true;
}

static bool hand_over(http_connection *self)
{
    const http_options *options = &self->server->options;
    if (self->is_refused) {
        api_count(&options->counts->connections_refused, 1);
        return refuse(self, API_UNAVAILABLE,
                      "the server has as many connections as it may");
    }
    self->phase = HTTP_REPLY;
    self->deadline_ns = 0;
    options->on_request(options->user, self->request);
    return true;
}

static bool has_room(const http_connection *self, uint64_t bytes)
{
    const http_options *options = &self->server->options;
    uint64_t now = mlai_ledger_now(options->ledger, MLA_SPACE_HOST, MLA_FOR_SERVER);
    return bytes <= options->max_server_bytes && now <= options->max_server_bytes - bytes;
}

static bool refuse_body(http_connection *self, uint64_t bytes)
{
    if (bytes > self->server->options.max_body_bytes - self->request->body.num) {
        return refuse(self, API_TOO_LARGE, "the body is larger than this server reads");
    }
    if (!has_room(self, bytes)) {
        return refuse(self, API_UNAVAILABLE, "the server's memory for requests is in use");
    }
    return false;
}

static bool begin_body(http_connection *self)
{
    const http_head *head = &self->request->head;
    if (!head->is_chunked && head->content_length == 0) {
        return hand_over(self);
    }
    if (refuse_body(self, head->content_length)) {
        return true;
    }
    self->phase = HTTP_BODY;
    self->deadline_ns = mlai_now_ns() + self->server->options.read_timeout_ns;
    if (head->expects_continue && evbuffer_get_length(self->in) == 0) {
        static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
        self->is_broken =
            evbuffer_add(self->out, go_on, sizeof go_on - 1) != 0 || !http_flush(self);
    }
    return true;
}

/* Empty lines before a request are allowed, and are what some clients send after a body. */
static void skip_empty_lines(http_connection *self)
{
    char two[2];
    while (self->searched == 0 && evbuffer_copyout(self->in, two, sizeof two) == 2 &&
           two[0] == '\r' && two[1] == '\n') {
        (void)evbuffer_drain(self->in, sizeof two);
    }
}

/* false: more is needed. */
static bool refuse_part(http_connection *self, const char *data, size_t bytes)
{
    const char *line_end = memchr(data, '\n', bytes);
    if (bytes > self->server->options.max_head_bytes) {
        return refuse(self, API_HEADERS_TOO_LARGE, "the headers are too large");
    }
    if (line_end && (line_end == data || line_end[-1] != '\r')) {
        return refuse(self, API_BAD_REQUEST,
                      "a line of the request does not end with CR LF");
    }
    return false;
}

static bool parse_head(http_connection *self, const char *data, size_t bytes)
{
    http_refusal refusal;
    if (bytes > self->server->options.max_head_bytes) {
        return refuse(self, API_HEADERS_TOO_LARGE, "the headers are too large");
    }
    if (!begin_request(self)) {
        return refuse(self, API_UNAVAILABLE, "the server's memory for requests is in use");
    }
    bool is_good = http_head_parse(data, bytes, &self->request->head, &refusal);
    (void)evbuffer_drain(self->in, bytes);
    self->searched = 0;
    return is_good ? begin_body(self) : refuse(self, refusal.status, refusal.text);
}

bool http_read_head(http_connection *self)
{
    skip_empty_lines(self);
    size_t bytes = evbuffer_get_length(self->in);
    if (bytes == 0) {
        return false;
    }
    if (self->searched == 0) {
        self->deadline_ns = mlai_now_ns() + self->server->options.read_timeout_ns;
    }
    const char *data = (const char *)evbuffer_pullup(self->in, -1);
    if (!data) {
        return refuse(self, API_UNAVAILABLE, "the server's memory for requests is in use");
    }
    size_t end = http_head_find_end(data, bytes, &self->searched);
    return end > 0 ? parse_head(self, data, end) : refuse_part(self, data, bytes);
}

/* What others hold may have grown since this body began. */
static bool make_room(const http_connection *self, size_t bytes)
{
    byte_buffer *body = &self->request->body;
    bool is_there = body->data && bytes <= body->capacity - body->num;
    return is_there || (has_room(self, 2 * (uint64_t)body->capacity + bytes) &&
                        byte_buffer_reserve(body, bytes, NULL) == MLA_OK);
}

/* Moves up to `most` bytes into the body; *moved: how many. false: refused. */
static bool keep(http_connection *self, uint64_t most, uint64_t *moved)
{
    byte_buffer *body = &self->request->body;
    size_t bytes = evbuffer_get_length(self->in);
    bytes = bytes < most ? bytes : (size_t)most;
    *moved = bytes;
    if (bytes > 0) {
        if (!make_room(self, bytes)) {
            return !refuse(self, API_UNAVAILABLE,
                           "the server's memory for requests is in use");
        }
        (void)evbuffer_remove(self->in, body->data + body->num, bytes);
        body->num += bytes;
    }
    return true;
}

static bool read_measured(http_connection *self)
{
    http_request *request = self->request;
    uint64_t moved = 0;
    if (!keep(self, request->head.content_length - request->body.num, &moved)) {
        return true;
    }
    return request->body.num == request->head.content_length && hand_over(self);
}

/* A line without its CR LF, at most MAX_CHUNK_LINE long. Negative: not all is there. */
static int take_line(http_connection *self, char line[MAX_CHUNK_LINE], bool *is_long)
{
    size_t end_bytes = 0;
    struct evbuffer_ptr end =
        evbuffer_search_eol(self->in, NULL, &end_bytes, EVBUFFER_EOL_CRLF_STRICT);
    ev_ssize_t bytes = end.pos < 0 ? (ev_ssize_t)evbuffer_get_length(self->in) : end.pos;
    *is_long = bytes > MAX_CHUNK_LINE;
    if (end.pos < 0 || *is_long) {
        return -1;
    }
    (void)evbuffer_remove(self->in, line, (size_t)bytes);
    (void)evbuffer_drain(self->in, end_bytes);
    return (int)bytes;
}

static bool read_chunk_line(http_connection *self)
{
    http_request *request = self->request;
    char line[MAX_CHUNK_LINE];
    bool is_long = false;
    uint64_t size = 0;
    int bytes = take_line(self, line, &is_long);
    if (bytes < 0) {
        return is_long && refuse(self, API_BAD_REQUEST, "a chunk's first line is too long");
    }
    if (!http_chunk_size(line, (size_t)bytes, UINT32_MAX, &size)) {
        return refuse(self, API_BAD_REQUEST, "a chunk does not begin with its size");
    }
    if (refuse_body(self, size)) {
        return true;
    }
    request->is_in_chunk = size > 0;
    request->is_in_trailer = size == 0;
    request->chunk_left = size;
    return true;
}

static bool read_chunk_end(http_connection *self)
{
    char end[2];
    if (evbuffer_get_length(self->in) < sizeof end) {
        return false;
    }
    (void)evbuffer_remove(self->in, end, sizeof end);
    if (end[0] != '\r' || end[1] != '\n') {
        return refuse(self, API_BAD_REQUEST, "a chunk is not as long as it says");
    }
    self->request->is_in_chunk = false;
    return true;
}

static bool read_chunk(http_connection *self)
{
    http_request *request = self->request;
    uint64_t moved = 0;
    if (request->chunk_left == 0) {
        return read_chunk_end(self);
    }
    if (!keep(self, request->chunk_left, &moved)) {
        return true;
    }
    request->chunk_left -= moved;
    return request->chunk_left == 0;
}

static bool read_trailer(http_connection *self)
{
    char line[MAX_CHUNK_LINE];
    bool is_long = false;
    int bytes = take_line(self, line, &is_long);
    if (bytes == 0) {
        return hand_over(self);
    }
    if (is_long || (bytes > 0 && ++self->request->num_trailer_lines > MAX_TRAILER_LINES)) {
        return refuse(self, API_HEADERS_TOO_LARGE, "the trailer is too large");
    }
    return bytes > 0;
}

bool http_read_body(http_connection *self)
{
    const http_request *request = self->request;
    if (!request->head.is_chunked) {
        return read_measured(self);
    }
    if (request->is_in_trailer) {
        return read_trailer(self);
    }
    return request->is_in_chunk ? read_chunk(self) : read_chunk_line(self);
}
