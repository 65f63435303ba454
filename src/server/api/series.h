/* series.h - what each histogram is called, and where its buckets end. */
#ifndef MLA_SERVER_API_SERIES_H
#define MLA_SERVER_API_SERIES_H

#include "server/api/metrics.h"

typedef struct api_series_shape {
    const char *name, *help; /* without the prefix; times are told in seconds */
    const char *vllm_name;
    const int64_t *bounds; /* [num_bounds] rising; at most API_MAX_BUCKETS - 1 */
    int32_t num_bounds;
    bool is_time; /* bounds and values are ns */
} api_series_shape;

const api_series_shape *api_series_shape_of(api_series series);

#endif
