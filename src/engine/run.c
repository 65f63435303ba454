/* run.c - some requests to their ends, in the caller's thread. */
#include "engine/state.h"

static void keep_result(engine_request *request, const engine_result *result)
{
    *request->result = *result;
    (*request->num_left)--;
}

static mla_status check_all(const engine *self, const engine_request *requests, int32_t num,
                            mla_error *err)
{
    for (int32_t i = 0; i < num; i++) {
        mla_status status = engine_check(self, &requests[i], NULL, err);
        if (status != MLA_OK) {
            mlai_error_prefix(err, "request %d", i);
            return status;
        }
    }
    return MLA_OK;
}

mla_status engine_run(engine *self, engine_request *requests, int32_t num_requests,
                      engine_result *results, mla_error *err)
{
    int32_t num_left = num_requests;
    mla_status status = MLA_OK;
    MLAI_TRY(check_all(self, requests, num_requests, err));
    for (int32_t i = 0; i < num_requests; i++) {
        requests[i].on_end = keep_result;
        requests[i].result = &results[i];
        requests[i].num_left = &num_left;
        engine_submit(self, &requests[i]);
    }
    while (num_left > 0) { /* a step that fails ends them all */
        bool is_idle = false;
        status = engine_step(self, &is_idle, err);
    }
    return status;
}
