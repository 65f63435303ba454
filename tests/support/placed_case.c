/* placed_case.c - see placed_case.h. */
#include "support/placed_case.h"

#include <stdlib.h>
#include <string.h>

#include "support/rig.h"

enum { ALL_ONES = 0xff };

static mla_in place(walled *to, const fenced *from, size_t need_bytes)
{
    size_t bytes = from->bytes > need_bytes ? from->bytes : need_bytes;
    if (bytes == 0) {
        return (mla_in){NULL, 0};
    }
    *to = walled_take(bytes, NULL);
    if (from->bytes > 0) {
        memory_to(to->data, from->data, from->bytes);
    }
    return (mla_in){to->data, bytes};
}

static mla_out place_out(walled *to, size_t bytes)
{
    *to = walled_take(bytes, NULL);
    return (mla_out){to->data, bytes};
}

enum { OUTPUT = 7, LSE, WORKSPACE };

static void place_all(placed_case *p, const attend_case *c, const mla_requirements *need)
{
    mla_buffers *b = &p->buffers;
    walled *part = p->part;
    *b = (mla_buffers)MLA_INIT(mla_buffers);
    b->kv_pool = place(part++, &c->pool, 0);
    b->query = place(part++, &c->query, need->query.bytes);
    b->block_table = place(part++, &c->table, 0);
    b->context_lens = place(part++, &c->lengths, 0);
    b->query_starts = place(part++, &c->starts, 0);
    b->kv_scale = place(part++, &c->kv_scale, 0);
    b->query_scale = place(part, &c->query_scale, 0);
    b->output = place_out(&p->part[OUTPUT], need->output.bytes);
    b->lse = place_out(&p->part[LSE], need->lse.bytes);
    b->workspace = place_out(&p->part[WORKSPACE], need->workspace.bytes);
}

placed_case placed_take(const attend_case *c, const mla_requirements *need)
{
    placed_case p = {.buffers = c->buffers,
                     .out = fenced_take(need->output.bytes, ALL_ONES),
                     .lse = fenced_take(need->lse.bytes, ALL_ONES),
                     .workspace = fenced_take(need->workspace.bytes, ALL_ONES)};
    if (rig_is_on_gpu) {
        place_all(&p, c, need);
        return p;
    }
    p.buffers.output = (mla_out){p.out.data, p.out.bytes};
    p.buffers.lse = (mla_out){p.lse.data, p.lse.bytes};
    p.buffers.workspace = (mla_out){p.workspace.data, p.workspace.bytes};
    return p;
}

void placed_fetch(placed_case *p)
{
    if (rig_is_on_gpu) {
        memory_wait();
        memory_from(p->out.data, p->part[OUTPUT].data, p->out.bytes);
        memory_from(p->lse.data, p->part[LSE].data, p->lse.bytes);
    }
}

void placed_blank(placed_case *p)
{
    fenced *const outputs[] = {&p->out, &p->lse, &p->workspace};
    for (int i = 0; i < 3; i++) {
        memset(outputs[i]->data, ALL_ONES, outputs[i]->bytes);
        if (rig_is_on_gpu) {
            memory_fill(p->part[OUTPUT + i].data, ALL_ONES, outputs[i]->bytes);
        }
    }
}

size_t placed_drop(placed_case *p)
{
    size_t num_trespassed = 0;
    for (int i = 0; i < PLACED_MEMBERS; i++) {
        num_trespassed += p->part[i].all ? walled_drop(&p->part[i]) : 0;
    }
    fenced_drop(&p->out);
    fenced_drop(&p->lse);
    fenced_drop(&p->workspace);
    return num_trespassed;
}

attend_verdict placed_judge(const placed_case *p, const attend_case *c)
{
    float *out = attend_case_out_as_f32(c, p->out.data);
    attend_verdict verdict = attend_case_judge(
        c, out, (const float *)(const void *)p->lse.data,
        rig_is_on_gpu ? attend_case_sums_on_cuda(c) : attend_case_sums(c));
    free(out);
    return verdict;
}
