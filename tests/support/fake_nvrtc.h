/* fake_nvrtc.h - what fake_cuda_begin and fake_cuda_end do for the compiler. */
#ifndef TEST_FAKE_NVRTC_H
#define TEST_FAKE_NVRTC_H

#include "support/fake_cuda.h"

void fake_nvrtc_begin(void);
void fake_nvrtc_end(void);

#endif
