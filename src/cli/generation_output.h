/* generation_output.h - answers as text that streams, and as JSON. */
#ifndef MLA_CLI_GENERATION_OUTPUT_H
#define MLA_CLI_GENERATION_OUTPUT_H

#include "cli/generation.h"
#include "server/memory_snapshot.h"

/* Prints what is new of the item in turn, and goes on to the next where that one is done:
 * answers come in the order of their prompts, each as soon as it can. */
mla_status generation_stream(generation_batch *batch, mla_error *err);

/* One prompt: an object; several: an array of them. */
mla_status generation_print_json(generation_batch *batch, const memory_snapshot *memory,
                                 mla_error *err);

#endif
