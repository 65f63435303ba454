/* qualify_device.c - the driver and the compiler behind a receipt, by their versions. */
#include <stdio.h>
#include <string.h>

#include "cli/build_info.h"
#include "cli/qualify.h"
#include "device/cuda/driver.h"
#include "device/cuda/nvrtc.h"

/* "580.159.04", from the line that NVIDIA's kernel module shows; or "". */
static void read_module_version(char *out, size_t out_bytes)
{
    char text[64] = "";
    FILE *file = fopen("/sys/module/nvidia/version", "re");
    out[0] = '\0';
    if (file) {
        if (fgets(text, sizeof text, file)) {
            text[strcspn(text, "\n")] = '\0';
            (void)snprintf(out, out_bytes, "%s", text);
        }
        (void)fclose(file);
    }
}

static void describe_driver(qualify_report *report)
{
    const mlai_cuda_driver *driver;
    char module[32];
    int version = 0;
    read_module_version(module, sizeof module);
    if (mlai_cuda_driver_get(&driver, NULL) == MLA_OK &&
        driver->cuDriverGetVersion(&version) == MLAI_CU_SUCCESS) {
        (void)snprintf(report->driver, sizeof report->driver, "%s%sCUDA %d.%d", module,
                       module[0] ? ", " : "", version / 1000, version % 1000 / 10);
    }
}

void qualify_device_describe(mla_backend backend, qualify_report *report)
{
    mlai_nvrtc nvrtc;
    (void)snprintf(report->driver, sizeof report->driver, "none");
    (void)snprintf(report->compiler, sizeof report->compiler, "%s", MLA_BUILD_COMPILER);
    if (backend != MLA_BACKEND_CUDA) {
        return;
    }
    describe_driver(report);
    (void)snprintf(report->compiler, sizeof report->compiler, "none: all from the cache");
    if (mlai_nvrtc_open(NULL, &nvrtc, NULL) == MLA_OK) {
        (void)snprintf(report->compiler, sizeof report->compiler, "NVRTC %d.%d",
                       nvrtc.version / 1000, nvrtc.version % 1000 / 10);
    }
}
