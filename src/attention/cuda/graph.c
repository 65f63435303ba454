/* graph.c - recording, replaying and dropping: see graph.h. */
#include "attention/cuda/graph.h"

struct mlai_graph {
    mlai_cu_graph_exec exec;
};

/* A capture that has begun is ended, whatever happens in it. */
static mla_status capture(mlai_cuda_state *state, const mlai_launcher *launcher,
                          const mlai_launch *launch, mlai_cu_graph *graph, mla_error *err)
{
    mlai_cuda *cuda = &state->cuda;
    mlai_launch into = *launch;
    into.stream.native = state->recorder;
    MLAI_TRY(
        MLAI_CU(cuda, cuStreamBeginCapture(state->recorder, MLAI_CU_CAPTURE_THREAD_LOCAL)));
    mla_status status = mlai_cuda_launch_into(state, launcher, &into, err);
    mlai_cu_result ended = cuda->driver->cuStreamEndCapture(state->recorder, graph);
    if (status == MLA_OK) {
        status = mlai_cuda_judge(cuda, ended, "cuStreamEndCapture", MLAI_HERE, err);
    } else if (ended == MLAI_CU_SUCCESS && *graph) {
        (void)cuda->driver->cuGraphDestroy(*graph);
    }
    return status;
}

static mla_status record_entered(mlai_cuda_state *state, const mlai_launcher *launcher,
                                 const mlai_launch *launch, mlai_cu_graph_exec *exec,
                                 mla_error *err)
{
    mlai_cu_graph graph = NULL;
    mlai_cuda *cuda = &state->cuda;
    pthread_mutex_lock(&state->mutex); /* one recorder for all threads */
    mla_status status = capture(state, launcher, launch, &graph, err);
    pthread_mutex_unlock(&state->mutex);
    MLAI_TRY(status);
    status = MLAI_CU(cuda, cuGraphInstantiateWithFlags(exec, graph, 0));
    (void)cuda->driver->cuGraphDestroy(graph);
    return status;
}

mla_status mlai_cuda_record(mla_context *context, const mlai_launcher *launcher,
                            const mlai_launch *launch, mlai_graph **out, mla_error *err)
{
    mlai_cuda_state *state = mlai_cuda_state_of(context);
    mlai_graph *graph;
    MLAI_TRY(mlai_cuda_check_alive(&state->cuda, err));
    MLAI_TRY(mlai_ledger_take_zeroed(&context->ledger, MLA_FOR_GRAPH, 1, sizeof *graph,
                                     "a recorded batch", (void **)&graph, err));
    mla_status status = mlai_cuda_enter(&state->cuda, err);
    if (status == MLA_OK) {
        status = record_entered(state, launcher, launch, &graph->exec, err);
        mlai_cuda_leave(&state->cuda);
    }
    if (status != MLA_OK) {
        mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_GRAPH, sizeof *graph,
                         graph);
        return status;
    }
    *out = graph;
    return MLA_OK;
}

static mla_status replay_entered(mlai_cuda *cuda, const mlai_graph *graph, mlai_mark *mark,
                                 mlai_cu_stream stream, mla_error *err)
{
    MLAI_TRY(MLAI_CU(cuda, cuGraphLaunch(graph->exec, stream)));
    return MLAI_CU(cuda, cuEventRecord((mlai_cu_event)mark, stream));
}

mla_status mlai_cuda_replay(mla_context *context, mlai_graph *graph, mlai_mark *mark,
                            mla_stream stream, mla_error *err)
{
    mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    MLAI_TRY(mlai_cuda_enter(cuda, err));
    mla_status status =
        replay_entered(cuda, graph, mark, (mlai_cu_stream)stream.native, err);
    mlai_cuda_leave(cuda);
    return status;
}

void mlai_cuda_drop_graph(mla_context *context, mlai_graph *graph)
{
    const mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    if (mlai_cuda_enter_to_free(cuda)) {
        (void)cuda->driver->cuGraphExecDestroy(graph->exec);
        mlai_cuda_leave(cuda);
    }
    mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_GRAPH, sizeof *graph, graph);
}
