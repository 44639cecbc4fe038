/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of cuda_kernel.c, as `nvcc --ptx` would make it:
 *
 *     y[i] = x[i] * x[i], for i < n */
#ifndef EXAMPLES_CUDA_SQUARE_H
#define EXAMPLES_CUDA_SQUARE_H

static const char cuda_square[] =
    ".version 6.4\n"
    ".target sm_52\n"
    ".address_size 64\n"
    ".visible .entry square(.param .u64 x, .param .u64 y, .param .u32 n)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %i, %n, %block, %size;\n"
    "    .reg .b64 %x, %y, %at, %v;\n"
    "    mov.u32 %block, %ctaid.x;\n"
    "    mov.u32 %size, %ntid.x;\n"
    "    mov.u32 %i, %tid.x;\n"
    "    mad.lo.u32 %i, %block, %size, %i;\n"
    "    ld.param.u32 %n, [n];\n"
    "    setp.ge.u32 %p, %i, %n;\n"
    "    @%p ret;\n"
    "    ld.param.u64 %x, [x];\n"
    "    ld.param.u64 %y, [y];\n"
    "    cvta.to.global.u64 %x, %x;\n"
    "    cvta.to.global.u64 %y, %y;\n"
    "    mul.wide.u32 %at, %i, 8;\n"
    "    add.u64 %x, %x, %at;\n"
    "    add.u64 %y, %y, %at;\n"
    "    ld.global.u64 %v, [%x];\n"
    "    mul.lo.u64 %v, %v, %v;\n"
    "    st.global.u64 [%y], %v;\n"
    "    ret;\n"
    "}\n";

#endif
