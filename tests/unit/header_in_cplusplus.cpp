// The public header in C++17: MLA_INIT gives a struct that is all zero but for its size, and
// the library's functions have C linkage.
#include <mla/mla.h>

#include <cstdio>
#include <cstring>

static int num_failed = 0;

static void expect(bool holds, const char *what)
{
    if (!holds) {
        std::printf("failed: %s\n", what);
        num_failed++;
    }
}

template <class T> static void expect_fresh(const T &fresh, const char *name)
{
    T zero;
    std::memset(static_cast<void *>(&zero), 0, sizeof zero);
    zero.struct_size = sizeof zero;
    expect(std::memcmp(&fresh, &zero, sizeof zero) == 0, name);
}

int main()
{
    expect_fresh(MLA_INIT(mla_caps), "mla_caps is all zero but for its size");
    expect_fresh(MLA_INIT(mla_device_info), "mla_device_info is all zero but for its size");
    expect_fresh(MLA_INIT(mla_buffers), "mla_buffers is all zero but for its size");
    expect_fresh(MLA_INIT(mla_memory_report),
                 "mla_memory_report is all zero but for its size");
    constexpr unsigned version =
        MLA_VERSION_MAJOR << 16 | MLA_VERSION_MINOR << 8 | MLA_VERSION_PATCH;
    expect(mla_version() == version, "the library is of the header's version");
    expect(std::strcmp(mla_status_name(MLA_ERR_FROZEN), "MLA_ERR_FROZEN") == 0,
           "a status has its name");
    return num_failed == 0 ? 0 : 1;
}
