/* metrics.c - counting into buckets: see metrics.h. */
#include "server/api/metrics.h"

#include <stddef.h>

#include "server/api/series.h"

void api_observe(api_metrics *metrics, api_series series, int64_t value)
{
    if (!metrics) {
        return;
    }
    api_histogram *histogram = &metrics->series[series];
    const api_series_shape *shape = api_series_shape_of(series);
    int32_t i = 0;
    while (i < shape->num_bounds && value > shape->bounds[i]) {
        i++;
    }
    api_count(&histogram->num[i], 1);
    api_count(&histogram->sum, value > 0 ? (uint64_t)value : 0);
}
