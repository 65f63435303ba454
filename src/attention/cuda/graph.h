/* graph.h - batches that were recorded into CUDA graphs of our own. */
#ifndef MLA_ATTENTION_CUDA_GRAPH_H
#define MLA_ATTENTION_CUDA_GRAPH_H

#include "attention/cuda/launcher.h"

mla_status mlai_cuda_record(mla_context *context, const mlai_launcher *launcher,
                            const mlai_launch *launch, mlai_graph **out, mla_error *err);
mla_status mlai_cuda_replay(mla_context *context, mlai_graph *graph, mlai_mark *mark,
                            mla_stream stream, mla_error *err);
void mlai_cuda_drop_graph(mla_context *context, mlai_graph *graph);

#endif
