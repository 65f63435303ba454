/* serving_watch.h - what /ledger and /metrics of a server say while it is asked. */
#ifndef MLA_CLI_SERVING_WATCH_H
#define MLA_CLI_SERVING_WATCH_H

#include <jansson.h>

#include "cli/client.h"

enum { WATCH_TEXT = 256 };

/* NaN: not told. */
typedef struct watch_figures {
    double running, waiting, held_pages; /* held: used or promised */
    double steps, step_seconds, prompt_tokens, new_tokens, lost; /* lost: abort and error */
    double loop_cpu_seconds, worker_cpu_seconds;
    double start_seconds, process;
    double allocations; /* of all classes but `server` */
} watch_figures;

typedef struct serving_watch {
    client_address to;
    client_call ledger_call, metrics_call;
    int64_t ledger_pause_ns, metrics_pause_ns; /* at least; longer as time goes by */
    int64_t begin_ns;                          /* of the latest watch_forget */
    json_t *before, *now;                      /* whole replies of /ledger */
    json_t *during;           /* the one with most pages in use since watch_forget */
    watch_figures first;      /* with `before` */
    watch_figures figures;    /* the latest */
    int32_t num_samples;      /* of /ledger, in all */
    char changed[WATCH_TEXT]; /* the first class that was not as before, or restart */
    double most_held, most_running, most_waiting; /* since watch_forget */
    int64_t peak_server_bytes;
    /* Between two samples of /metrics while is_steady was given: */
    bool is_armed, has_begin, has_end;
    watch_figures begin, end;
    int32_t num_looks;        /* at /metrics, from begin to end */
    char failure[WATCH_TEXT]; /* of a GET */
} serving_watch;

serving_watch watch_none(mla_context *context);
void watch_end(serving_watch *watch);

/* One GET of each and nothing else. */
mla_status watch_look(serving_watch *watch, mla_error *err);
/* Processor time of the server's loop for one GET of /metrics. NaN: not told. */
mla_status watch_cost_of_look(serving_watch *watch, double *seconds, mla_error *err);
/* What is there now becomes what was before. */
void watch_remember(serving_watch *watch);
/* The maxima and the steady window begin anew. */
void watch_forget(serving_watch *watch);
/* Takes replies that are there, and asks again where the pause is over. */
mla_status watch_step(serving_watch *watch, bool is_steady, mla_error *err);

/* ledger: a reply of /ledger. 0 where it is not told. */
int64_t watch_pages(const json_t *ledger, const char *state);
int64_t watch_class_bytes(const json_t *ledger, const char *name);

#endif
