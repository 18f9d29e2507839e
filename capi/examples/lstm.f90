! The same from Fortran: gfortran capi/examples/lstm.f90 -lflambeau
! Arrays of Fortran lie with their first index innermost, which strides say; nothing is copied.
module flambeau
  use iso_c_binding
  implicit none
  integer(c_int), parameter :: flambeau_float32 = 6

  type, bind(c) :: flambeau_array
    type(c_ptr) :: data
    integer(c_int) :: dtype
    integer(c_int) :: rank
    type(c_ptr) :: sizes
    type(c_ptr) :: strides
  end type

  interface
    function flambeau_load(path) bind(c)
      import
      character(kind=c_char), intent(in) :: path(*)
      type(c_ptr) :: flambeau_load
    end function
    function flambeau_module_call(module, method, arguments, count) bind(c)
      import
      type(c_ptr), value :: module
      character(kind=c_char), intent(in) :: method(*)
      type(c_ptr), intent(in) :: arguments(*)
      integer(c_size_t), value :: count
      type(c_ptr) :: flambeau_module_call
    end function
    function flambeau_tensor(array, release, context) bind(c)
      import
      type(flambeau_array), intent(in) :: array
      type(c_funptr), value :: release
      type(c_ptr), value :: context
      type(c_ptr) :: flambeau_tensor
    end function
    function flambeau_item(value, index) bind(c)
      import
      type(c_ptr), value :: value
      integer(c_size_t), value :: index
      type(c_ptr) :: flambeau_item
    end function
    function flambeau_as_array(value, out) bind(c)
      import
      type(c_ptr), value :: value
      type(flambeau_array), intent(out) :: out
      integer(c_int) :: flambeau_as_array
    end function
    subroutine flambeau_value_free(value) bind(c)
      import
      type(c_ptr), value :: value
    end subroutine
    subroutine flambeau_module_free(module) bind(c)
      import
      type(c_ptr), value :: module
    end subroutine
  end interface

contains

  function tensor_of(numbers) result(value)
    real(c_float), target, intent(in) :: numbers(:, :)
    type(c_ptr) :: value
    integer(c_int64_t), target :: sizes(2), strides(2)
    sizes = shape(numbers)
    strides = [1_c_int64_t, sizes(1)]
    value = flambeau_tensor(flambeau_array(c_loc(numbers), flambeau_float32, 2, c_loc(sizes), c_loc(strides)), &
                            c_null_funptr, c_null_ptr)
  end function
end module

program lstm
  use flambeau
  implicit none
  real(c_float), target :: x(3, 12), h(3, 16), c(3, 16)
  real(c_float), pointer :: first
  type(c_ptr) :: cell, states, hidden, arguments(3)
  type(flambeau_array) :: array
  character(len=1024) :: path
  integer :: n

  call get_command_argument(1, path)
  cell = flambeau_load(trim(path) // c_null_char)
  x = 0.5
  h = 0
  c = 0
  arguments = [tensor_of(x), tensor_of(h), tensor_of(c)]
  states = flambeau_module_call(cell, "forward" // c_null_char, arguments, 3_c_size_t)
  if (.not. c_associated(states)) stop 1
  hidden = flambeau_item(states, 0_c_size_t)
  if (flambeau_as_array(hidden, array) /= 0) stop 1
  call c_f_pointer(array%data, first)
  print '(i0, a, f0.4)', array%rank, " dimensions, the first element is ", first
  call flambeau_value_free(hidden)
  call flambeau_value_free(states)
  do n = 1, 3
    call flambeau_value_free(arguments(n))
  end do
  call flambeau_module_free(cell)
end program
