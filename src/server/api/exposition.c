/* exposition.c - Prometheus' text format: see exposition.h. */
#include "server/api/exposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/api/series.h"

enum { NUMBER_BYTES = 40, NAME_BYTES = 96 };

static void add_number(exposition *self, double value)
{
    char digits[NUMBER_BYTES];
    (void)snprintf(digits, sizeof digits, " %.15g\n", value);
    api_text_add(self->out, digits);
}

/* Of a label: \, " and line ends are escaped as in JSON. */
static void add_label(exposition *self, const char *label, const char *value, bool is_first)
{
    api_text_add(self->out, is_first ? "{" : ",");
    api_text_add(self->out, label);
    api_text_add(self->out, "=");
    api_text_string(self->out, value);
}

/* The name and the labels that every line has; whether a label is there already. */
static bool begin_line(exposition *self, const char *suffix)
{
    api_text_add(self->out, self->name);
    api_text_add(self->out, suffix);
    if (self->model_name) {
        add_label(self, "model_name", self->model_name, true);
        add_label(self, "engine", "0", false);
    }
    return self->model_name != NULL;
}

static void end_line(exposition *self, bool has_label, double value)
{
    api_text_add(self->out, has_label ? "}" : "");
    add_number(self, value);
}

void exposition_begin(exposition *self, const char *name, const char *type,
                      const char *help)
{
    self->name = name;
    api_text_add(self->out, "# HELP ");
    api_text_add(self->out, name);
    api_text_add(self->out, " ");
    api_text_add(self->out, help);
    api_text_add(self->out, "\n# TYPE ");
    api_text_add(self->out, name);
    api_text_add(self->out, " ");
    api_text_add(self->out, type);
    api_text_add(self->out, "\n");
}

void exposition_line(exposition *self, double value)
{
    bool has_label = begin_line(self, "");
    end_line(self, has_label, value);
}

void exposition_labelled(exposition *self, const char *label, const char *value,
                         double number)
{
    bool has_label = begin_line(self, "");
    add_label(self, label, value, !has_label);
    end_line(self, true, number);
}

void exposition_pair(exposition *self, const char *label, const char *value,
                     const char *other_label, const char *other_value, double number)
{
    bool has_label = begin_line(self, "");
    add_label(self, label, value, !has_label);
    add_label(self, other_label, other_value, false);
    end_line(self, true, number);
}

void exposition_gauge(exposition *self, const char *name, const char *help, double value)
{
    exposition_begin(self, name, "gauge", help);
    exposition_line(self, value);
}

void exposition_counter(exposition *self, const char *name, const char *help, double value)
{
    exposition_begin(self, name, "counter", help);
    exposition_line(self, value);
}

static void bucket(exposition *self, const char *bound, uint64_t num)
{
    bool has_label = begin_line(self, "_bucket");
    add_label(self, "le", bound, !has_label);
    end_line(self, true, (double)num);
}

void exposition_histogram(exposition *self, const api_metrics *metrics, api_series series)
{
    static const double ns_a_second = 1e9;
    const api_histogram *histogram = &metrics->series[series];
    const api_series_shape *shape = api_series_shape_of(series);
    const double unit = shape->is_time ? ns_a_second : 1;
    char name[NAME_BYTES];
    char bound[NUMBER_BYTES];
    uint64_t num = 0;
    (void)snprintf(name, sizeof name, "%s%s", self->model_name ? "vllm:" : "mla_",
                   self->model_name ? shape->vllm_name : shape->name);
    exposition_begin(self, name, "histogram", shape->help);
    for (int32_t i = 0; i < shape->num_bounds; i++) {
        num += atomic_load_explicit(&histogram->num[i], memory_order_relaxed);
        (void)snprintf(bound, sizeof bound, "%g", (double)shape->bounds[i] / unit);
        bucket(self, bound, num);
    }
    num += atomic_load_explicit(&histogram->num[shape->num_bounds], memory_order_relaxed);
    bucket(self, "+Inf", num);
    uint64_t sum = atomic_load_explicit(&histogram->sum, memory_order_relaxed);
    end_line(self, begin_line(self, "_sum"), (double)sum / unit);
    end_line(self, begin_line(self, "_count"), (double)num);
    self->name = NULL;
}
