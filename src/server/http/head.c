/* head.c - request line and headers: see head.h. */
#include "server/http/head.h"

#include <string.h>
#include <strings.h>

typedef struct span {
    const char *data;
    size_t bytes;
} span;

static bool refuse(http_refusal *refusal, int status, const char *text)
{
    *refusal = (http_refusal){status, text};
    return false;
}

size_t http_head_find_end(const char *data, size_t bytes, size_t *from)
{
    static const char end[] = "\r\n\r\n";
    size_t back = sizeof end - 2; /* it may have begun before */
    size_t begin = *from > back ? *from - back : 0;
    const char *found = memmem(data + begin, bytes - begin, end, sizeof end - 1);
    *from = bytes;
    return found ? (size_t)(found - data) + sizeof end - 1 : 0;
}

static bool is_token_byte(unsigned char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z') || (byte && strchr("!#$%&'*+-.^_`|~", byte));
}

static bool is_token(span text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        if (!is_token_byte((unsigned char)text.data[i])) {
            return false;
        }
    }
    return text.bytes > 0;
}

/* Visible characters, blanks, tabs and what is not ASCII. */
static bool is_field_text(span text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if ((byte < ' ' && byte != '\t') || byte == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool is_word(span text, const char *word)
{
    return text.bytes == strlen(word) && strncasecmp(text.data, word, text.bytes) == 0;
}

static span trim(span text)
{
    while (text.bytes > 0 && (*text.data == ' ' || *text.data == '\t')) {
        text = (span){text.data + 1, text.bytes - 1};
    }
    while (text.bytes > 0 &&
           (text.data[text.bytes - 1] == ' ' || text.data[text.bytes - 1] == '\t')) {
        text.bytes--;
    }
    return text;
}

/* Cuts off what stands before `mark`, which goes, too. All of it where there is none. */
static span cut(span *rest, char mark)
{
    const char *found = rest->bytes > 0 ? memchr(rest->data, mark, rest->bytes) : NULL;
    span first = {rest->data, found ? (size_t)(found - rest->data) : rest->bytes};
    size_t used = first.bytes + (found ? 1 : 0);
    *rest = (span){rest->data + used, rest->bytes - used};
    return first;
}

/* A line without its CR LF. false: a CR or LF stands elsewhere. */
static bool cut_line(span *rest, span *line)
{
    *line = cut(rest, '\n');
    if (line->bytes == 0 || line->data[line->bytes - 1] != '\r') {
        return false;
    }
    line->bytes--;
    return !memchr(line->data, '\r', line->bytes);
}

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    char lower = (char)(digit | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool copy_text(span text, char *out, size_t room)
{
    if (text.bytes >= room) {
        return false;
    }
    memcpy(out, text.data, text.bytes);
    out[text.bytes] = 0;
    return true;
}

/* 0: the path cannot be decoded. The length is that of what was read. */
static size_t decode_byte(span from, char *out)
{
    if (*from.data != '%') {
        *out = *from.data;
        return 1;
    }
    int high = from.bytes > 2 ? hex_digit(from.data[1]) : -1;
    int low = from.bytes > 2 ? hex_digit(from.data[2]) : -1;
    *out = (char)(high * 16 + low);
    return high < 0 || low < 0 ? 0 : 3;
}

static bool decode_path(span path, http_head *out, http_refusal *refusal)
{
    size_t num = 0;
    while (path.bytes > 0) {
        char byte = 0;
        size_t used = decode_byte(path, &byte);
        if (used == 0 || (unsigned char)byte < ' ' || byte == 0x7f) {
            return refuse(refusal, 400, "the path of the request cannot be decoded");
        }
        if (num + 1 >= sizeof out->path) {
            return refuse(refusal, 414, "the path of the request is too long");
        }
        out->path[num++] = byte;
        path = (span){path.data + used, path.bytes - used};
    }
    out->path[num] = 0;
    return true;
}

/* http://host/path is the same as /path. */
static void leave_origin_out(span *target)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (int i = 0; i < 2; i++) {
        size_t bytes = strlen(schemes[i]);
        if (target->bytes >= bytes && strncasecmp(target->data, schemes[i], bytes) == 0) {
            span rest = {target->data + bytes, target->bytes - bytes};
            const char *slash = memchr(rest.data, '/', rest.bytes);
            static const char root[] = "/";
            *target = slash ? (span){slash, rest.bytes - (size_t)(slash - rest.data)}
                            : (span){root, 1};
            return;
        }
    }
}

static bool parse_target(span target, http_head *out, http_refusal *refusal)
{
    if (target.bytes == 1 && *target.data == '*') {
        return copy_text(target, out->path, sizeof out->path);
    }
    leave_origin_out(&target);
    if (target.bytes == 0 || *target.data != '/') {
        return refuse(refusal, 400, "the target of the request is no path");
    }
    return decode_path(cut(&target, '?'), out, refusal);
}

static bool parse_version(span version, http_head *out, http_refusal *refusal)
{
    bool is_http = version.bytes == 8 && memcmp(version.data, "HTTP/", 5) == 0 &&
                   version.data[6] == '.';
    if (!is_http) {
        return refuse(refusal, 400, "the first line of the request is not HTTP");
    }
    out->is_old = memcmp(version.data + 5, "1.0", 3) == 0;
    if (!out->is_old && memcmp(version.data + 5, "1.1", 3) != 0) {
        return refuse(refusal, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    }
    return true;
}

static bool parse_line(span line, http_head *out, http_refusal *refusal)
{
    span method = cut(&line, ' ');
    span target = cut(&line, ' ');
    if (!is_token(method)) {
        return refuse(refusal, 400, "the method of the request is no word");
    }
    if (!copy_text(method, out->method, sizeof out->method)) {
        return refuse(refusal, 501, "the method of the request is not known here");
    }
    return parse_version(line, out, refusal) && parse_target(target, out, refusal);
}

static bool parse_length(span value, http_head *out, http_refusal *refusal)
{
    uint64_t length = 0;
    bool is_number = value.bytes > 0 && value.bytes <= 18;
    for (size_t i = 0; is_number && i < value.bytes; i++) {
        is_number = value.data[i] >= '0' && value.data[i] <= '9';
        length = length * 10 + (uint64_t)(value.data[i] - '0');
    }
    if (!is_number || out->has_length) {
        return refuse(refusal, 400, "Content-Length is not one whole number");
    }
    out->has_length = true;
    out->content_length = length;
    return true;
}

static bool parse_coding(span value, http_head *out, http_refusal *refusal)
{
    if (out->is_chunked || out->is_old) {
        return refuse(refusal, 400, "Transfer-Encoding is not allowed here");
    }
    if (!is_word(value, "chunked")) {
        return refuse(refusal, 501, "the only Transfer-Encoding known here is chunked");
    }
    out->is_chunked = true;
    return true;
}

static bool parse_connection(span value, http_head *out)
{
    while (value.bytes > 0) {
        span word = trim(cut(&value, ','));
        out->says_close = out->says_close || is_word(word, "close");
        out->says_keep = out->says_keep || is_word(word, "keep-alive");
    }
    return true;
}

static bool parse_expect(span value, http_head *out, http_refusal *refusal)
{
    if (!is_word(value, "100-continue")) {
        return refuse(refusal, 417, "the only Expect known here is 100-continue");
    }
    out->expects_continue = !out->is_old;
    return true;
}

static bool parse_content_coding(span value, http_refusal *refusal)
{
    return is_word(value, "identity") ||
           refuse(refusal, 415, "a body with a Content-Encoding is not read here");
}

static bool parse_host(http_head *out, http_refusal *refusal)
{
    if (out->has_host) {
        return refuse(refusal, 400, "there is more than one Host");
    }
    out->has_host = true;
    return true;
}

static bool parse_field(span name, span value, http_head *out, http_refusal *refusal)
{
    if (is_word(name, "content-length")) {
        return parse_length(value, out, refusal);
    }
    if (is_word(name, "transfer-encoding")) {
        return parse_coding(value, out, refusal);
    }
    if (is_word(name, "connection")) {
        return parse_connection(value, out);
    }
    if (is_word(name, "expect")) {
        return parse_expect(value, out, refusal);
    }
    if (is_word(name, "content-encoding")) {
        return parse_content_coding(value, refusal);
    }
    if (is_word(name, "host")) {
        return parse_host(out, refusal);
    }
    if (is_word(name, "authorization") &&
        !copy_text(value, out->authorization, sizeof out->authorization)) {
        return refuse(refusal, 431, "the Authorization header is too long");
    }
    if (is_word(name, "access-control-request-headers")) {
        (void)copy_text(value, out->asked_headers, sizeof out->asked_headers);
    }
    return true;
}

static bool parse_header(span line, http_head *out, http_refusal *refusal)
{
    if (++out->num_headers > HTTP_MAX_HEADERS) {
        return refuse(refusal, 431, "the request has too many headers");
    }
    bool has_colon = memchr(line.data, ':', line.bytes) != NULL;
    span name = cut(&line, ':');
    span value = trim(line);
    if (!has_colon || !is_token(name) || !is_field_text(value)) {
        return refuse(refusal, 400, "a header is not a name, a colon and a value");
    }
    return parse_field(name, value, out, refusal);
}

static bool conclude(http_head *out, http_refusal *refusal)
{
    if (out->is_chunked && out->has_length) {
        return refuse(refusal, 400, "Transfer-Encoding and Content-Length contradict");
    }
    if (!out->is_old && !out->has_host) {
        return refuse(refusal, 400, "an HTTP/1.1 request needs a Host");
    }
    out->keeps_alive = !out->says_close && (!out->is_old || out->says_keep);
    return true;
}

bool http_head_parse(const char *data, size_t bytes, http_head *out, http_refusal *refusal)
{
    span rest = {data, bytes};
    span line;
    *out = (http_head){0};
    if (!cut_line(&rest, &line)) {
        return refuse(refusal, 400, "a line of the request does not end with CR LF");
    }
    if (!parse_line(line, out, refusal)) {
        return false;
    }
    while (rest.bytes > 0) {
        if (!cut_line(&rest, &line)) {
            return refuse(refusal, 400, "a line of the request does not end with CR LF");
        }
        if (line.bytes > 0 && !parse_header(line, out, refusal)) {
            return false;
        }
    }
    return conclude(out, refusal);
}

bool http_chunk_size(const char *line, size_t bytes, uint64_t most, uint64_t *out)
{
    span rest = {line, bytes};
    span digits = trim(cut(&rest, ';'));
    uint64_t size = 0;
    for (size_t i = 0; i < digits.bytes; i++) {
        int digit = hex_digit(digits.data[i]);
        if (digit < 0 || size > most) {
            return false;
        }
        size = size * 16 + (uint64_t)digit;
    }
    *out = size;
    return digits.bytes > 0 && is_field_text(rest);
}
