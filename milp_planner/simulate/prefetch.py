"""Ask for memory ahead of its use, from compiled loops."""

from __future__ import annotations

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def prefetch(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Begin to load ``array[index]`` (its first byte's cache line), to be written soon.

    Nothing is read, and nothing is checked: an index out of range does no harm.

    References
    ----------
    LLVM Language Reference, ``llvm.prefetch``.
    """

    def generate(context, builder, signature, values):  # type: ignore[no-untyped-def]
        array_type, index_type = signature.args
        data = context.make_array(array_type)(context, builder, values[0])
        stride = cgutils.unpack_tuple(builder, data.strides, array_type.ndim)[0]
        offset = context.cast(builder, values[1], index_type, types.intp)
        start = builder.bitcast(data.data, ir.IntType(8).as_pointer())
        line = builder.gep(start, [builder.mul(offset, stride)])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [line.type, number, number, number])
        to_write, keep, is_data = number(1), number(3), number(1)
        builder.call(
            builder.module.declare_intrinsic("llvm.prefetch", [line.type], kind),
            [line, to_write, keep, is_data],
        )
        return context.get_dummy_value()

    return types.void(array, index), generate
