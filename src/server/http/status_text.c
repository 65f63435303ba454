/* status_text.c - the words of a reply's first line. */
#include "server/http/state.h"

typedef struct status_words {
    int status;
    const char *words;
} status_words;

static const status_words known[] = {
    {200, "OK"},
    {204, "No Content"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};
enum { NUM_KNOWN = sizeof known / sizeof known[0] };

const char *http_status_words(int status)
{
    for (int i = 0; i < NUM_KNOWN; i++) {
        if (known[i].status == status) {
            return known[i].words;
        }
    }
    return "Unknown";
}
