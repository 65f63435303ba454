/* exposition.h - lines of Prometheus' text format. */
#ifndef MLA_SERVER_API_EXPOSITION_H
#define MLA_SERVER_API_EXPOSITION_H

#include "server/api/settings.h"
#include "server/api/text.h"

typedef struct exposition {
    api_text *out;
    const char *name;       /* of the metric that has begun */
    const char *model_name; /* a label of every line; NULL: none */
} exposition;

/* HELP and TYPE; then lines of that name. */
void exposition_begin(exposition *self, const char *name, const char *type,
                      const char *help);
void exposition_line(exposition *self, double value);
void exposition_labelled(exposition *self, const char *label, const char *value,
                         double number);
void exposition_pair(exposition *self, const char *label, const char *value,
                     const char *other_label, const char *other_value, double number);

/* A metric of one line. */
void exposition_gauge(exposition *self, const char *name, const char *help, double value);
void exposition_counter(exposition *self, const char *name, const char *help, double value);

/* Under our name or, where the model's is given, under vLLM's. */
void exposition_histogram(exposition *self, const api_metrics *metrics, api_series series);

/* vllm.c: all that dashboards and load generators know by vLLM's names. */
void exposition_vllm(exposition *self, const api_settings *settings,
                     const engine_stats *stats);

#endif
