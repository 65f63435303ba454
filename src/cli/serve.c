/* serve.c - `mla serve`: prepared, frozen, then listening. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "attention/context.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/human_bytes.h"
#include "cli/loaded_model.h"
#include "cli/memory_table.h"
#include "cli/serve_options.h"
#include "cli/serve_pool.h"
#include "server/server.h"

enum { DEFAULT_CONNECTIONS = 4096, OTHER_FILES = 64, SIGNAL_STATUS = 128 };

typedef struct serve_run {
    serve_options wanted;
    loaded_model loaded;
    chat_template *chat;
    api_keys keys;
    timeline preparation;
    api_defaults defaults;
    server *server;
    int log_file;
    char name[256];
} serve_run;

static void note_prime(void *user)
{
    serve_run *run = user;
    timeline_add(&run->preparation, mlai_context_ledger(run->loaded.context));
}

/* A model without a template answers no conversations, which is no reason not to serve it. */
static mla_status open_chat(serve_run *run, mla_error *err)
{
    mla_error error = {0};
    mla_status status =
        chat_template_open(run->loaded.context, run->wanted.model.dir, &run->chat, &error);
    if (status != MLA_OK && status != MLA_ERR_UNSUPPORTED) {
        *err = error;
        return status;
    }
    if (status != MLA_OK) {
        (void)printf("no conversations: %s\n", error.message);
    }
    return MLA_OK;
}

static mla_status prepare(serve_run *run, mla_error *err)
{
    const serve_options *wanted = &run->wanted;
    loaded_model_limits limits = {
        .engine = {.kv_format = wanted->model.kv_format,
                   .max_requests = wanted->max_requests,
                   .max_context_tokens = wanted->max_context_tokens,
                   .kv_bytes = wanted->kv_bytes,
                   .default_max_tokens = wanted->default_max_tokens,
                   .draft_tokens = wanted->draft_tokens,
                   .has_prefix_cache = !wanted->has_no_prefix_cache,
                   .chat = run->chat},
        .inside = note_prime,
        .user = run,
    };
    if (limits.engine.kv_bytes == 0) {
        limits.engine.kv_bytes = serve_pool_bytes(run->loaded.model, &limits.engine);
    }
    note_prime(run);
    mla_status status = loaded_model_prepare(&run->loaded, &limits, err);
    note_prime(run);
    return status;
}

static mla_status show_memory(serve_run *run, const char *phase, mla_error *err)
{
    static memory_snapshot now;
    MLAI_TRY(memory_snapshot_take(run->loaded.context, phase, NULL, &now, err));
    memory_table_print(&now);
    return MLA_OK;
}

static mla_status make_ready(serve_run *run, mla_error *err)
{
    const model_options *wanted = &run->wanted.model;
    MLAI_TRY(loaded_model_open(&run->loaded, wanted, err));
    MLAI_TRY(open_chat(run, err));
    MLAI_TRY(api_defaults_read(mlai_context_ledger(run->loaded.context), wanted->dir,
                               &run->defaults, err));
    MLAI_TRY(loaded_model_load(&run->loaded, wanted, err));
    MLAI_TRY(prepare(run, err));
    MLAI_TRY(show_memory(run, "prepared", err));
    return mla_context_freeze(run->loaded.context, err);
}

static void say_frozen(const serve_run *run)
{
    const engine_limits *limits = engine_limits_of(run->loaded.engine);
    char pool[HUMAN_BYTES_CHARS];
    human_bytes_write((uint64_t)limits->num_pages * limits->page_bytes, pool);
    (void)printf("frozen: %d requests run together, of up to %lld tokens; %d pages of %d "
                 "tokens (%s); from here on only the class server takes memory\n",
                 (int)limits->max_requests, (long long)limits->max_context_tokens,
                 (int)limits->num_pages, (int)limits->page_tokens, pool);
}

/* As many files as the system lets this process have. */
static int32_t raise_files(int32_t wanted)
{
    struct rlimit files = {0};
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
        return wanted ? wanted : DEFAULT_CONNECTIONS;
    }
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    (void)getrlimit(RLIMIT_NOFILE, &files);
    rlim_t most = files.rlim_cur > OTHER_FILES ? files.rlim_cur - OTHER_FILES : 1;
    if (wanted) {
        return wanted;
    }
    return most < DEFAULT_CONNECTIONS ? (int32_t)most : DEFAULT_CONNECTIONS;
}

static mla_status open_log(serve_run *run, mla_error *err)
{
    const char *path = run->wanted.log_file;
    run->log_file = STDERR_FILENO;
    if (path) {
        run->log_file =
            open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
        if (run->log_file < 0) {
            return mlai_fail_errno(err, MLA_ERR_ARGUMENT, errno, MLAI_HERE,
                                   "cannot open the log %s", path);
        }
    }
    return MLA_OK;
}

/* The last part of the directory's path. */
static const char *name_of(serve_run *run)
{
    const char *dir = run->wanted.model.dir;
    size_t bytes = strlen(dir);
    while (bytes > 1 && dir[bytes - 1] == '/') {
        bytes--;
    }
    size_t begin = bytes;
    while (begin > 0 && dir[begin - 1] != '/') {
        begin--;
    }
    (void)snprintf(run->name, sizeof run->name, "%.*s", (int)(bytes - begin), dir + begin);
    return run->name[0] ? run->name : "model";
}

static int64_t ns_of(float seconds)
{
    return (int64_t)((double)seconds * 1e9);
}

static server_options options_of(serve_run *run)
{
    const serve_options *wanted = &run->wanted;
    static char version[32];
    (void)snprintf(version, sizeof version, "%d.%d.%d", MLA_VERSION_MAJOR,
                   MLA_VERSION_MINOR, MLA_VERSION_PATCH);
    return (server_options){
        .engine = run->loaded.engine,
        .ledger = mlai_context_ledger(run->loaded.context),
        .model_name = wanted->served_name ? wanted->served_name : name_of(run),
        .model_path = wanted->model.dir,
        .version = version,
        .defaults = run->defaults,
        .host = wanted->host,
        .port = wanted->port,
        .max_connections = raise_files(wanted->max_connections),
        .max_waiting = wanted->max_waiting,
        .max_body_bytes = (size_t)wanted->max_body_bytes,
        .max_server_bytes = wanted->max_server_bytes,
        .read_timeout_ns = ns_of(wanted->read_timeout_s),
        .write_timeout_ns = ns_of(wanted->write_timeout_s),
        .idle_timeout_ns = ns_of(wanted->idle_timeout_s),
        .comment_interval_ns = ns_of(wanted->comment_interval_s),
        .shutdown_timeout_ns = ns_of(wanted->shutdown_timeout_s),
        .cors_origin = wanted->cors_origin,
        .keys = wanted->key_file ? &run->keys : NULL,
        .timeline = &run->preparation,
        .log_file = run->log_file,
        .allows_control = wanted->allows_control,
        .is_vllm_compatible = wanted->is_vllm_compatible,
    };
}

static void say_address(const serve_run *run)
{
    const char *host = run->wanted.host;
    bool is_long = strchr(host, ':') != NULL; /* an IPv6 address */
    (void)printf("listening on http://%s%s%s:%d\n", is_long ? "[" : "", host,
                 is_long ? "]" : "", (int)server_port(run->server));
    (void)fflush(stdout);
}

static mla_status serve(serve_run *run, mla_error *err)
{
    int signal_number = 0;
    if (run->wanted.key_file) {
        MLAI_TRY(api_keys_read(run->wanted.key_file, &run->keys, err));
    }
    MLAI_TRY(open_log(run, err));
    MLAI_TRY(make_ready(run, err));
    say_frozen(run);
    const server_options options = options_of(run);
    MLAI_TRY(server_open(&options, &run->server, err));
    say_address(run);
    mla_status status = server_run(run->server, &signal_number, err);
    if (signal_number != 0) {
        exit(SIGNAL_STATUS + signal_number); /* at once: threads are running still */
    }
    return status;
}

static void end(serve_run *run)
{
    server_close(&run->server);
    if (run->log_file > STDERR_FILENO) {
        (void)close(run->log_file);
    }
    engine_close(&run->loaded.engine); /* it borrows the template */
    chat_template_close(&run->chat);
}

int command_serve(int argc, char **argv)
{
    static serve_run run;
    mla_error error = {0};
    if (!serve_options_parse(argc, argv, &run.wanted)) {
        return COMMAND_MISUSED;
    }
    (void)signal(SIGXFSZ, SIG_IGN); /* a log that is too large is no end */
    mla_status status = serve(&run, &error);
    end(&run);
    return loaded_model_end(&run.loaded, status, &error);
}
