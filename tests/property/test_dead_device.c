/* A real device that dies under a run: the failure is told for good, only giving back is legal,
 * and it works. In a process of its own, whose device is dead afterwards. Without a GPU it is
 * skipped by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "support/gpu.h"
#include "support/must.h"
#include "support/rig.h"

static mla_error err;

static void expect_refusals(rig *r)
{
    mla_session *session = NULL;
    mla_ticket ticket;
    mla_caps other = r->caps;
    other.num_heads = 7;
    assert_int_equal(mla_run(r->binding, &r->batch, (mla_stream){NULL}, &err),
                     MLA_ERR_DEVICE);
    assert_int_equal(mla_record(r->binding, &r->batch, &err), MLA_ERR_DEVICE);
    must(mla_session_open(r->context, NULL, &session, &err), &err);
    assert_int_equal(mla_session_add(session, &other, NULL, &ticket, &err), MLA_ERR_DEVICE);
    mla_session_close(&session);
}

/* Its keys are at an address that is nobody's. */
static void after_a_sticky_error_only_giving_back_is_legal(void **state)
{
    (void)state;
    mla_caps caps = rig_caps();
    rig r = rig_open(&caps, 1, 1);
    const rig_request request = {1, 500, 1};
    char first[sizeof err.message];
    rig_load(&r, &request, 1);
    rig_run(&r);
    mla_buffers bad = r.bound;
    mla_binding *binding = NULL;
    bad.kv_pool.data = (const void *)(uintptr_t)0x1000;
    must(mla_bind(r.plan, &bad, &binding, &err), &err);
    must(mla_run(binding, &r.batch, (mla_stream){NULL}, &err), &err);
    mla_status status = MLA_ERR_STATE;
    while (status == MLA_ERR_STATE) {
        status = mla_poll(binding, &err);
    }
    assert_int_equal(status, MLA_ERR_DEVICE);
    memcpy(first, err.message, sizeof first);
    print_message("%s\n", first);
    expect_refusals(&r);
    assert_int_equal(mla_poll(r.binding, &err), MLA_ERR_DEVICE);
    assert_string_equal(err.message, first);
    mla_unbind(&binding);
    rig_close(&r);
}

static int run_suite(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_sticky_error_only_giving_back_is_legal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return gpu_only_suite("dead_device", run_suite);
}
