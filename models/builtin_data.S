/* The built-in weights as read-only data. The assembler includes the file as it is: no generated source of hundreds
   of megabytes, and the same lines serve every ELF target. Alignment: a cache line, for any vector load. */
        .section .rodata.tessera_builtin, "a", %progbits
        .balign 64
        .globl  tessera_builtin_begin
        .hidden tessera_builtin_begin
        .type   tessera_builtin_begin, %object
tessera_builtin_begin:
        .incbin "models/tessera_speech.safetensors"
        .size   tessera_builtin_begin, . - tessera_builtin_begin
        .globl  tessera_builtin_end
        .hidden tessera_builtin_end
        .type   tessera_builtin_end, %object
tessera_builtin_end:
        .byte   0
        .size   tessera_builtin_end, 1

/* Without this note the linker would make the stack executable. */
        .section .note.GNU-stack, "", %progbits
