/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of the file BINARY, between two symbols that only our library sees. */
    .section .rodata
    .balign 64
    .globl deviceKernels, deviceKernelsEnd
    .hidden deviceKernels, deviceKernelsEnd
deviceKernels:
    .incbin BINARY
deviceKernelsEnd:
    .section .note.GNU-stack, "", @progbits
