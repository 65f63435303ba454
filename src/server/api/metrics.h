/* metrics.h - what is counted while requests are served: plain atomics, so that any thread
 * counts without a lock and without an allocation. */
#ifndef MLA_SERVER_API_METRICS_H
#define MLA_SERVER_API_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { API_MAX_BUCKETS = 24 };

/* Buckets by upper bound, the last one without; cumulative only when written. */
typedef struct api_histogram {
    _Atomic uint64_t num[API_MAX_BUCKETS];
    _Atomic uint64_t sum; /* ns, or tokens */
} api_histogram;

typedef enum api_series {
    API_TIME_TO_FIRST_TOKEN, /* from submit */
    API_INTER_TOKEN,
    API_END_TO_END,
    API_QUEUE_TIME,
    API_PREFILL_TIME,
    API_DECODE_TIME,
    API_INFERENCE_TIME, /* prefill and decode */
    API_TIME_PER_TOKEN, /* of decode, one request's mean */
    API_PROMPT_TOKENS,
    API_NEW_TOKENS,
    API_MAX_TOKENS,  /* that were asked for, or the default */
    API_NUM_CHOICES, /* n, once a request */
    API_NUM_SERIES,
} api_series;

/* The transport's. It counts with api_count; the gauges go up and down. */
typedef struct api_transport {
    _Atomic uint64_t connections_open, connections, connections_refused;
    _Atomic uint64_t requests_open, requests; /* HTTP requests of any path */
    _Atomic uint64_t disconnects;  /* clients that left before their answer's end */
    _Atomic uint64_t slow_readers; /* dropped with too much unsent */
    _Atomic uint64_t bytes_in, bytes_out;
    _Atomic uint64_t replies[600]; /* by HTTP status; 499: left */
} api_transport;

typedef struct api_metrics {
    api_histogram series[API_NUM_SERIES];
    api_transport transport;
    _Atomic uint64_t choices_open; /* submitted and not ended */
    /* Processor time of the server's own threads; written before /metrics is */
    _Atomic uint64_t loop_cpu_ns, worker_cpu_ns;
} api_metrics;

static inline void api_count(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

static inline void api_uncount(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_fetch_sub_explicit(counter, by, memory_order_relaxed);
}

/* value: ns or tokens, as the series has it. metrics: NULL counts nothing. Any thread. */
void api_observe(api_metrics *metrics, api_series series, int64_t value);

#endif
