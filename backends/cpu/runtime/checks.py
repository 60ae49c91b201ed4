"""The native function that checks calls: whether arrays, codes and the error state are those a program was
made for. And where native code finds the fields of Python's objects.

In: what `launch.make_check` writes into a table. Out: LLVM text, one for all signatures. Stage: run time.
"""

from __future__ import annotations

#: The symbols of the type of ndarrays, of NumPy's scalars, and of `True`.
NDARRAY, GENERIC, TRUE = "jitcore_ndarray_type", "jitcore_generic_type", "jitcore_true"

TYPE_OFFSET = 8  # PyObject.ob_type
DATA_OFFSET = 16  # PyArrayObject.data, the first field after PyObject, which is the value of a number
NDIM_OFFSET, SHAPE_OFFSET, DTYPE_OFFSET, FLAGS_OFFSET = 24, 32, 56, 64  # its nd, dimensions, descr, flags
CODE_OFFSET, ITEMS_OFFSET = 48, 24  # PyFunctionObject.func_code, PyListObject.ob_item

#: Arrays of a call whose places are compared with each other.
MAX_COMPARED = 16


# A table of int64 is its `self`: how many arrays, the mask of flags, a context variable, a list, whether 2 is
# an answer, how many codes; for each of these, where its address should stand, and the address; for each
# array its dtype, flags, bytes, whether it is written, number of axes, extents.
TEXT = f"""
define ptr @is_known(ptr %self, ptr %args, i64 %nargs) {{
enter:
  %value_slot = alloca ptr
  %meets = alloca i64
  %starts = alloca [{MAX_COMPARED} x i64]
  %stops = alloca [{MAX_COMPARED} x i64]
  %writes = alloca [{MAX_COMPARED} x i64]
  %table_slot = getelementptr i8, ptr %self, i64 {DATA_OFFSET}
  %table = load ptr, ptr %table_slot
  %count = load i64, ptr %table
  %mask_slot = getelementptr i64, ptr %table, i64 1
  %mask = load i64, ptr %mask_slot
  %variable_slot = getelementptr i64, ptr %table, i64 2
  %variable = load ptr, ptr %variable_slot
  %list_slot = getelementptr i64, ptr %table, i64 3
  %list = load ptr, ptr %list_slot
  %compares_slot = getelementptr i64, ptr %table, i64 4
  %compares = load i64, ptr %compares_slot
  %are_few = icmp ule i64 %count, {MAX_COMPARED}
  store i64 0, ptr %meets
  %codes_slot = getelementptr i64, ptr %table, i64 5
  %codes = load i64, ptr %codes_slot
  %codes_table = getelementptr i64, ptr %table, i64 6
  %count_is_right = icmp eq i64 %count, %nargs
  br i1 %count_is_right, label %next_code, label %finish
next_code:
  %c = phi i64 [ 0, %enter ], [ %following_c, %check_code ]
  %code_row = phi ptr [ %codes_table, %enter ], [ %next_code_row, %check_code ]
  %more_codes = icmp ult i64 %c, %codes
  br i1 %more_codes, label %check_code, label %next_array
check_code:
  %code_slot = load ptr, ptr %code_row
  %code = load i64, ptr %code_slot
  %right_code_slot = getelementptr i64, ptr %code_row, i64 1
  %right_code = load i64, ptr %right_code_slot
  %next_code_row = getelementptr i64, ptr %code_row, i64 2
  %following_c = add i64 %c, 1
  %has_code = icmp eq i64 %code, %right_code
  br i1 %has_code, label %next_code, label %finish
next_array:
  %k = phi i64 [ 0, %next_code ], [ %following, %end_array ], [ %following, %next_other ]
  %row = phi ptr [ %code_row, %next_code ], [ %next_row, %end_array ], [ %next_row, %next_other ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %check_type, label %check_state
check_type:
  %array_slot = getelementptr ptr, ptr %args, i64 %k
  %array = load ptr, ptr %array_slot
  %type_slot = getelementptr i8, ptr %array, i64 {TYPE_OFFSET}
  %type = load ptr, ptr %type_slot
  %is_array = icmp eq ptr %type, @{NDARRAY}
  br i1 %is_array, label %check_dtype, label %finish
check_dtype:
  %dtype_slot = getelementptr i8, ptr %array, i64 {DTYPE_OFFSET}
  %dtype = load i64, ptr %dtype_slot
  %right_dtype = load i64, ptr %row
  %has_dtype = icmp eq i64 %dtype, %right_dtype
  br i1 %has_dtype, label %check_flags, label %finish
check_flags:
  %flags_slot = getelementptr i8, ptr %array, i64 {FLAGS_OFFSET}
  %all_flags = load i32, ptr %flags_slot
  %wide_flags = zext i32 %all_flags to i64
  %flags = and i64 %wide_flags, %mask
  %right_flags_slot = getelementptr i64, ptr %row, i64 1
  %right_flags = load i64, ptr %right_flags_slot
  %has_flags = icmp eq i64 %flags, %right_flags
  br i1 %has_flags, label %check_axes, label %finish
check_axes:
  %axes_slot = getelementptr i8, ptr %array, i64 {NDIM_OFFSET}
  %axes = load i32, ptr %axes_slot
  %wide_axes = zext i32 %axes to i64
  %right_axes_slot = getelementptr i64, ptr %row, i64 4
  %right_axes = load i64, ptr %right_axes_slot
  %has_axes = icmp eq i64 %wide_axes, %right_axes
  %shape_slot = getelementptr i8, ptr %array, i64 {SHAPE_OFFSET}
  %shape = load ptr, ptr %shape_slot
  %right_shape = getelementptr i64, ptr %row, i64 5
  br i1 %has_axes, label %next_axis, label %finish
next_axis:
  %axis = phi i64 [ 0, %check_axes ], [ %following_axis, %check_extent ]
  %more_axes = icmp ult i64 %axis, %right_axes
  br i1 %more_axes, label %check_extent, label %end_array
check_extent:
  %extent_slot = getelementptr i64, ptr %shape, i64 %axis
  %extent = load i64, ptr %extent_slot
  %right_extent_slot = getelementptr i64, ptr %right_shape, i64 %axis
  %right_extent = load i64, ptr %right_extent_slot
  %has_extent = icmp eq i64 %extent, %right_extent
  %following_axis = add i64 %axis, 1
  br i1 %has_extent, label %next_axis, label %finish
end_array:
  %next_row = getelementptr i64, ptr %right_shape, i64 %right_axes
  %following = add i64 %k, 1
  br i1 %are_few, label %read_place, label %next_array
read_place:
  %data_slot = getelementptr i8, ptr %array, i64 {DATA_OFFSET}
  %start = load i64, ptr %data_slot
  %bytes_slot = getelementptr i64, ptr %row, i64 2
  %bytes = load i64, ptr %bytes_slot
  %stop = add i64 %start, %bytes
  %written_slot = getelementptr i64, ptr %row, i64 3
  %written = load i64, ptr %written_slot
  %start_slot = getelementptr i64, ptr %starts, i64 %k
  store i64 %start, ptr %start_slot
  %stop_slot = getelementptr i64, ptr %stops, i64 %k
  store i64 %stop, ptr %stop_slot
  %write_slot = getelementptr i64, ptr %writes, i64 %k
  store i64 %written, ptr %write_slot
  br label %next_other
next_other:
  %j = phi i64 [ 0, %read_place ], [ %following_j, %compare_places ]
  %more_others = icmp ult i64 %j, %k
  br i1 %more_others, label %check_other, label %next_array
check_other:
  %other_slot = getelementptr ptr, ptr %args, i64 %j
  %other = load ptr, ptr %other_slot
  %is_same = icmp eq ptr %other, %array
  br i1 %is_same, label %finish, label %compare_places
compare_places:
  %other_start_slot = getelementptr i64, ptr %starts, i64 %j
  %other_start = load i64, ptr %other_start_slot
  %other_stop_slot = getelementptr i64, ptr %stops, i64 %j
  %other_stop = load i64, ptr %other_stop_slot
  %other_write_slot = getelementptr i64, ptr %writes, i64 %j
  %other_written = load i64, ptr %other_write_slot
  %is_before = icmp ult i64 %start, %other_stop
  %is_behind = icmp ult i64 %other_start, %stop
  %is_together = and i1 %is_before, %is_behind
  %together = zext i1 %is_together to i64
  %any_written = or i64 %written, %other_written
  %met = and i64 %together, %any_written
  %met_before = load i64, ptr %meets
  %met_now = or i64 %met, %met_before
  store i64 %met_now, ptr %meets
  %following_j = add i64 %j, 1
  br label %next_other
check_state:
  store ptr null, ptr %value_slot
  %failed = call i32 @PyContextVar_Get(ptr %variable, ptr null, ptr %value_slot)
  %value = load ptr, ptr %value_slot
  call void @Py_DecRef(ptr %value)
  %items_slot = getelementptr i8, ptr %list, i64 {ITEMS_OFFSET}
  %items = load ptr, ptr %items_slot
  %right_value = load ptr, ptr %items
  %has_value = icmp eq ptr %value, %right_value
  br label %finish
finish:
  %is_right = phi i1 [ %has_value, %check_state ], [ false, %enter ], [ false, %check_code ],
                     [ false, %check_type ], [ false, %check_dtype ], [ false, %check_flags ],
                     [ false, %check_axes ], [ false, %check_extent ], [ false, %check_other ]
  %met_at_all = load i64, ptr %meets
  %not_met = xor i64 %met_at_all, 1
  %apart = and i64 %compares, %not_met
  %good = add i64 %apart, 1
  %answer = select i1 %is_right, i64 %good, i64 0
  %result = call ptr @PyLong_FromLongLong(i64 %answer)
  ret ptr %result
}}
"""
