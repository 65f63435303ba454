/* server.h - a prepared engine behind an OpenAI-compatible API. Three threads: the caller's is
 * the loop's, which has the connections; one prepares requests (JSON, chat template, tokens);
 * one steps the engine. */
#ifndef MLA_SERVER_SERVER_H
#define MLA_SERVER_SERVER_H

#include "base/ledger.h"
#include "engine/engine.h"
#include "server/api/settings.h"
#include "server/api_keys.h"
#include "server/timeline.h"

typedef struct server server;

/* Everything that a pointer points to is borrowed until server_close. */
typedef struct server_options {
    engine *engine;
    mlai_ledger *ledger; /* of the engine's context */
    const char *model_name, *model_path, *version;
    api_defaults defaults; /* of sampling */
    const char *host;
    int32_t port; /* 0: the kernel chooses */
    int32_t max_connections;
    int32_t max_waiting; /* requests that have no place in the engine yet */
    size_t max_body_bytes;
    uint64_t max_server_bytes; /* of class server, for connections and bodies */
    int64_t read_timeout_ns, write_timeout_ns, idle_timeout_ns;
    int64_t comment_interval_ns; /* of a stream that says nothing */
    int64_t shutdown_timeout_ns;
    const char *cors_origin;  /* NULL: nothing is said about other origins */
    const api_keys *keys;     /* NULL: everybody may */
    const timeline *timeline; /* NULL: not in /ledger */
    int log_file;             /* a line a request; -1: none */
    bool allows_control, is_vllm_compatible;
} server_options;

/* Listens, and answers from server_run on. out: owned, server_close. One a process. */
mla_status server_open(const server_options *options, server **out, mla_error *err);
int32_t server_port(const server *self);

/* Until SIGTERM or SIGINT, and what is running then has ended; or until the engine fails,
 * which is its error. *signal_number: of a second signal, which ended it at once: threads are
 * running still, and only the process's end is left to do. Otherwise 0. */
mla_status server_run(server *self, int *signal_number, mla_error *err);
void server_close(server **server);

#endif
