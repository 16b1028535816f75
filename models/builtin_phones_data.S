/* The weights of the phone classifier as read-only data, as builtin_data.S does it: a file of its own, so that the
   linker takes only what a program asks for. */
        .section .rodata.tessera_phones, "a", %progbits
        .balign 64
        .globl  tessera_phones_begin
        .hidden tessera_phones_begin
        .type   tessera_phones_begin, %object
tessera_phones_begin:
        .incbin "models/phone_classifier.safetensors"
        .size   tessera_phones_begin, . - tessera_phones_begin
        .globl  tessera_phones_end
        .hidden tessera_phones_end
        .type   tessera_phones_end, %object
tessera_phones_end:
        .byte   0
        .size   tessera_phones_end, 1

        .section .note.GNU-stack, "", %progbits
