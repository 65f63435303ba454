/* client_reply.c - a reply out of its frame, as far as it has come: see client.h. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/client.h"
#include "cli/digits.h"

enum { MAX_HEAD_BYTES = 65536, LINE_END_BYTES = 2, HEX = 16 };
#define MAX_BODY_BYTES (UINT64_C(1) << 28)

/* The first bytes of `in` up to `mark` and with it, or 0. */
static size_t find(const client_call *call, const char *mark)
{
    const char *at =
        call->in.num ? memmem(call->in.data, call->in.num, mark, strlen(mark)) : NULL;
    return at ? (size_t)(at - call->in.data) + strlen(mark) : 0;
}

static void drop(client_call *call, size_t bytes)
{
    call->in.num -= bytes;
    memmove(call->in.data, call->in.data + bytes, call->in.num);
}

/* The value of a field of the head, in front of which a line ends. */
static const char *field_of(const char *head, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = strstr(head, "\r\n"); at; at = strstr(at, "\r\n")) {
        at += LINE_END_BYTES;
        if (strncasecmp(at, name, length) == 0 && at[length] == ':') {
            return at + length + 1 + strspn(at + length + 1, " ");
        }
    }
    return NULL;
}

static void begin_body(client_call *call, const char *head)
{
    const char *coding = field_of(head, "Transfer-Encoding");
    const char *counted = field_of(head, "Content-Length");
    if (coding && strncasecmp(coding, "chunked", strlen("chunked")) == 0) {
        call->phase = CLIENT_CHUNK_SIZE;
    } else if (counted) {
        call->phase = CLIENT_COUNTED;
        if (!digits_read(counted, MAX_BODY_BYTES, &call->left_bytes)) {
            client_call_finish(call, "the reply's length is not a number, or too large");
        }
    } else {
        call->phase = CLIENT_UNCOUNTED;
    }
}

/* Each of these takes one part, if it is all there, and says whether it did. */

static bool take_head(client_call *call)
{
    static const char version[] = "HTTP/1.1 ";
    uint64_t status = 0;
    size_t bytes = find(call, "\r\n\r\n");
    if (bytes == 0) {
        if (call->in.num > MAX_HEAD_BYTES) {
            client_call_finish(call, "the reply's head has no end");
        }
        return false;
    }
    call->in.data[bytes - 1] = '\0';
    if (strncmp(call->in.data, version, sizeof version - 1) != 0 ||
        !digits_read(call->in.data + sizeof version - 1, 999, &status)) {
        client_call_finish(call, "the reply is not HTTP/1.1");
        return false;
    }
    call->status = (int)status;
    begin_body(call, call->in.data);
    drop(call, bytes);
    return true;
}

/* false: no digit, or more than a body may have. */
static bool read_hex(const char *text, uint64_t *out)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t value = 0;
    const char *at = text;
    for (; isxdigit((unsigned char)*at) && value <= MAX_BODY_BYTES; at++) {
        value = value * HEX + (uint64_t)(strchr(digits, tolower(*at)) - digits);
    }
    *out = value;
    return at > text && value <= MAX_BODY_BYTES;
}

static bool take_chunk_size(client_call *call)
{
    size_t bytes = find(call, "\r\n");
    if (bytes == 0) {
        return false;
    }
    if (!read_hex(call->in.data, &call->left_bytes)) {
        client_call_finish(call, "a chunk of the reply has no size, or too large a one");
        return false;
    }
    call->phase = call->left_bytes > 0 ? CLIENT_CHUNK : CLIENT_TRAILER;
    drop(call, bytes);
    return true;
}

static bool take_line_end(client_call *call)
{
    if (call->in.num < LINE_END_BYTES) {
        return false;
    }
    if (memcmp(call->in.data, "\r\n", LINE_END_BYTES) != 0) {
        client_call_finish(call, "a chunk of the reply does not end with its line");
        return false;
    }
    drop(call, LINE_END_BYTES);
    if (call->phase == CLIENT_TRAILER) {
        client_call_finish(call, NULL);
        return false;
    }
    call->phase = CLIENT_CHUNK_SIZE;
    return true;
}

static bool take_bytes(client_call *call, mla_status *status, mla_error *err)
{
    uint64_t bytes = call->in.num < call->left_bytes ? call->in.num : call->left_bytes;
    if (call->body.num + bytes > MAX_BODY_BYTES) {
        client_call_finish(call, "the reply is too long");
        return false;
    }
    *status = client_append(&call->body, call->in.data, (size_t)bytes, err);
    call->left_bytes -= bytes;
    if (bytes > 0) {
        drop(call, (size_t)bytes);
    }
    if (call->left_bytes > 0 || *status != MLA_OK) {
        return false;
    }
    if (call->phase == CLIENT_COUNTED) {
        client_call_finish(call, NULL);
        return false;
    }
    call->phase = CLIENT_CHUNK_END;
    return true;
}

static bool take_part(client_call *call, mla_status *status, mla_error *err)
{
    switch (call->phase) {
    case CLIENT_HEAD:
        return take_head(call);
    case CLIENT_CHUNK_SIZE:
        return take_chunk_size(call);
    case CLIENT_CHUNK_END:
    case CLIENT_TRAILER:
        return take_line_end(call);
    case CLIENT_CHUNK:
    case CLIENT_COUNTED:
        return take_bytes(call, status, err);
    case CLIENT_UNCOUNTED:
        call->left_bytes = call->in.num + 1;
        return take_bytes(call, status, err);
    }
    return false;
}

mla_status client_reply_take(client_call *call, bool is_end, mla_error *err)
{
    mla_status status = MLA_OK;
    while (!call->is_done && take_part(call, &status, err)) {
    }
    if (status == MLA_OK && is_end && !call->is_done) {
        bool is_whole = call->phase == CLIENT_UNCOUNTED;
        client_call_finish(call, is_whole ? NULL : "the connection ended within the reply");
    }
    return status;
}
