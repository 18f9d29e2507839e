// Flambeau for C++: what <torch/script.h> has for loading and running programs, under the same names, over flambeau.h.
//
// A program that includes this instead of <torch/script.h> and keeps to loading, calling and looking at values compiles as
// it is: `torch::jit::load`, `Module`, `IValue`, `torch::Tensor`, `torch::from_blob`, `c10::Error`. Operators are methods and
// functions where libtorch has them most often; any other is `flambeau::op("aten::name", {...})`. Define
// FLAMBEAU_NO_TORCH_NAMES before the include to keep the namespaces `torch`, `at` and `c10` free. Needs C++17.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef FLAMBEAU_HPP
#define FLAMBEAU_HPP

#include "flambeau.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <istream>
#include <iterator>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace flambeau {

// What a call that fails throws; `what()` has PyTorch's message, the place in the program, and hints.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string &message) : std::runtime_error(message) {}
  std::string msg() const { return what(); }
  const char *what_without_backtrace() const noexcept { return what(); }
};

// A limit of a `LimitScope` that was reached: "memory", "steps", "seconds", ...; "cancel" where the scope was cancelled.
class LimitError : public Error {
 public:
  LimitError(const std::string &message, const std::string &limit) : Error(message), limit_(limit) {}
  const std::string &limit() const noexcept { return limit_; }

 private:
  std::string limit_;
};

namespace detail {

using Handle = std::shared_ptr<flambeau_value>;

// Throws what the last call said.
[[noreturn]] inline void fail() {
  if (const char *limit = flambeau_last_limit()) throw LimitError(flambeau_last_error(), limit);
  throw Error(flambeau_last_error());
}

inline Handle own(flambeau_value *value) {
  if (value == nullptr) detail::fail();
  return Handle(value, flambeau_value_free);
}

inline void check(int status) {
  if (status != 0) detail::fail();
}

}  // namespace detail

// What programs may use; 0 means no limit. See flambeau_limits.
using Limits = flambeau_limits;

// Bounds all that this thread does as long as it lives: `flambeau::LimitScope scope({1 << 30, 0, 10.0, 0, 0, 0, 0});`. Any
// thread may call `cancel()`.
class LimitScope {
 public:
  explicit LimitScope(const Limits &limits) : scope_(flambeau_limits_begin(&limits), flambeau_scope_free) {
    if (!scope_) detail::fail();
  }
  void cancel() const { flambeau_scope_cancel(scope_.get()); }

 private:
  std::unique_ptr<flambeau_scope, void (*)(flambeau_scope *)> scope_;
};

// c10::ScalarType, with its numbers.
enum class ScalarType : int {
  Byte = FLAMBEAU_UINT8,
  Char = FLAMBEAU_INT8,
  Short = FLAMBEAU_INT16,
  Int = FLAMBEAU_INT32,
  Long = FLAMBEAU_INT64,
  Half = FLAMBEAU_FLOAT16,
  Float = FLAMBEAU_FLOAT32,
  Double = FLAMBEAU_FLOAT64,
  ComplexFloat = FLAMBEAU_COMPLEX64,
  ComplexDouble = FLAMBEAU_COMPLEX128,
  Bool = FLAMBEAU_BOOLEAN,
  BFloat16 = FLAMBEAU_BFLOAT16
};

constexpr ScalarType kUInt8 = ScalarType::Byte, kInt8 = ScalarType::Char, kInt16 = ScalarType::Short,
                     kInt32 = ScalarType::Int, kInt64 = ScalarType::Long, kFloat16 = ScalarType::Half,
                     kFloat32 = ScalarType::Float, kFloat64 = ScalarType::Double, kBool = ScalarType::Bool,
                     kBFloat16 = ScalarType::BFloat16, kByte = ScalarType::Byte, kChar = ScalarType::Char,
                     kShort = ScalarType::Short, kInt = ScalarType::Int, kLong = ScalarType::Long,
                     kHalf = ScalarType::Half, kFloat = ScalarType::Float, kDouble = ScalarType::Double;

namespace detail {

template <typename T>
struct TypeOf;
template <>
struct TypeOf<uint8_t> { static constexpr ScalarType value = ScalarType::Byte; };
template <>
struct TypeOf<int8_t> { static constexpr ScalarType value = ScalarType::Char; };
template <>
struct TypeOf<int16_t> { static constexpr ScalarType value = ScalarType::Short; };
template <>
struct TypeOf<int32_t> { static constexpr ScalarType value = ScalarType::Int; };
template <>
struct TypeOf<int64_t> { static constexpr ScalarType value = ScalarType::Long; };
template <>
struct TypeOf<float> { static constexpr ScalarType value = ScalarType::Float; };
template <>
struct TypeOf<double> { static constexpr ScalarType value = ScalarType::Double; };
template <>
struct TypeOf<bool> { static constexpr ScalarType value = ScalarType::Bool; };
template <>
struct TypeOf<std::complex<float>> { static constexpr ScalarType value = ScalarType::ComplexFloat; };
template <>
struct TypeOf<std::complex<double>> { static constexpr ScalarType value = ScalarType::ComplexDouble; };

}  // namespace detail

// Where tensors are: this library has the cpu alone from C++.
enum class DeviceType : int { CPU = 0, CUDA = 1 };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;

class Device {
 public:
  Device(DeviceType type, int index = -1) : type_(type) {
    if (type != DeviceType::CPU) throw Error("tensors of C++ programs are on the cpu; this device is not supported");
    (void)index;
  }
  Device(const std::string &name) : Device(name == "cpu" ? DeviceType::CPU : DeviceType::CUDA) {}
  Device(const char *name) : Device(std::string(name)) {}
  DeviceType type() const { return type_; }
  bool is_cpu() const { return type_ == DeviceType::CPU; }
  bool is_cuda() const { return false; }
  std::string str() const { return "cpu"; }

 private:
  DeviceType type_;
};

// torch::TensorOptions as far as programs that run models need it.
class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType dtype) : dtype_(dtype) {}
  TensorOptions dtype(ScalarType dtype) const { return TensorOptions(dtype); }
  TensorOptions device(Device) const { return *this; }
  TensorOptions requires_grad(bool on) const {
    if (on) throw Error("C++ programs record no gradients");
    return *this;
  }
  ScalarType type() const { return dtype_; }

 private:
  ScalarType dtype_ = ScalarType::Float;
};

inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions device(Device device) { return TensorOptions().device(device); }

// A non-owning array of numbers: c10::IntArrayRef.
template <typename T>
class ArrayRef {
 public:
  ArrayRef() = default;
  ArrayRef(const T *data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const std::vector<T> &items) : data_(items.data()), size_(items.size()) {}
// The list lives to the end of the call that it is written in, which is as long as this is used.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  ArrayRef(const std::initializer_list<T> &items) : data_(items.begin()), size_(items.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  const T *begin() const { return data_; }
  const T *end() const { return data_ + size_; }
  const T *data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T &operator[](size_t at) const { return data_[at]; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  friend bool operator==(ArrayRef a, ArrayRef b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
  friend bool operator!=(ArrayRef a, ArrayRef b) { return !(a == b); }
  friend std::ostream &operator<<(std::ostream &out, ArrayRef items) {
    out << '[';
    for (size_t n = 0; n < items.size(); ++n) out << (n ? ", " : "") << items[n];
    return out << ']';
  }

 private:
  const T *data_ = nullptr;
  size_t size_ = 0;
};
using IntArrayRef = ArrayRef<int64_t>;

class Tensor;
class IValue;
class Module;

// Calls any operator by its name, `aten::softmax`; `aten::ones(dtype=)` gives the last argument by keyword.
IValue op(const std::string &name, const std::vector<IValue> &arguments);

// A value of a program.
class IValue {
 public:
  IValue() : handle_(detail::own(flambeau_collect(FLAMBEAU_NONE, nullptr, 0))) {}
  IValue(std::nullopt_t) : IValue() {}
  IValue(bool truth) : handle_(detail::own(flambeau_bool(truth))) {}
  template <typename T, typename = std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>>
  IValue(T number) : handle_(detail::own(flambeau_int(static_cast<int64_t>(number)))) {}
  IValue(double number) : handle_(detail::own(flambeau_double(number))) {}
  IValue(float number) : IValue(static_cast<double>(number)) {}
  IValue(const std::string &text) : handle_(detail::own(flambeau_string(text.data(), text.size()))) {}
  IValue(const char *text) : IValue(std::string(text)) {}
  IValue(ScalarType dtype) : IValue(static_cast<int64_t>(dtype)) {}
  IValue(Tensor tensor);
  IValue(IntArrayRef numbers) : IValue(collect(FLAMBEAU_LIST, numbers)) {}
  template <typename T>
  IValue(const std::vector<T> &items) : IValue(collect(FLAMBEAU_LIST, items)) {}
  template <typename... T>
  IValue(const std::tuple<T...> &items)
      : IValue(std::apply([](const T &...each) { return tuple({IValue(each)...}); }, items)) {}
  template <typename T>
  IValue(const std::optional<T> &item) : IValue(item ? IValue(*item) : IValue()) {}
  explicit IValue(detail::Handle handle) : handle_(std::move(handle)) {}

  static IValue list(const std::vector<IValue> &items) { return collect(FLAMBEAU_LIST, items); }
  static IValue tuple(const std::vector<IValue> &items) { return collect(FLAMBEAU_TUPLE, items); }
  static IValue dict(const std::vector<std::pair<IValue, IValue>> &entries) {
    std::vector<IValue> flat;
    for (const auto &entry : entries) {
      flat.push_back(entry.first);
      flat.push_back(entry.second);
    }
    return collect(FLAMBEAU_DICT, flat);
  }

  flambeau_kind kind() const { return flambeau_value_kind(handle_.get()); }
  bool isNone() const { return kind() == FLAMBEAU_NONE; }
  bool isTensor() const { return kind() == FLAMBEAU_TENSOR; }
  bool isBool() const { return kind() == FLAMBEAU_BOOL; }
  bool isInt() const { return kind() == FLAMBEAU_INT; }
  bool isDouble() const { return kind() == FLAMBEAU_DOUBLE; }
  bool isString() const { return kind() == FLAMBEAU_STRING; }
  bool isList() const { return kind() == FLAMBEAU_LIST; }
  bool isTuple() const { return kind() == FLAMBEAU_TUPLE; }
  bool isGenericDict() const { return kind() == FLAMBEAU_DICT; }

  Tensor toTensor() const;
  bool toBool() const {
    int64_t out = 0;
    detail::check(flambeau_as_int(handle_.get(), &out));
    return out != 0;
  }
  int64_t toInt() const {
    int64_t out = 0;
    detail::check(flambeau_as_int(handle_.get(), &out));
    return out;
  }
  double toDouble() const {
    double out = 0;
    detail::check(flambeau_as_double(handle_.get(), &out));
    return out;
  }
  std::string toStringRef() const {
    if (!isString()) throw Error("the value is not a string: " + text());
    return text();
  }
  // Items of a list or tuple; of a dict, alternating keys and values.
  std::vector<IValue> items() const {
    int64_t length = flambeau_length(handle_.get());
    if (length < 0) detail::fail();
    if (isGenericDict()) length *= 2;
    std::vector<IValue> out;
    for (int64_t n = 0; n < length; ++n) out.push_back(IValue(detail::own(flambeau_item(handle_.get(), n))));
    return out;
  }
  std::vector<IValue> toListRef() const { return items(); }
  std::vector<IValue> toList() const { return items(); }
  std::vector<Tensor> toTensorVector() const;
  std::vector<int64_t> toIntVector() const { return each<int64_t>([](const IValue &x) { return x.toInt(); }); }
  std::vector<double> toDoubleVector() const { return each<double>([](const IValue &x) { return x.toDouble(); }); }

  // A tuple's items, as `toTuple()->elements()` has them in libtorch.
  class Tuple {
   public:
    explicit Tuple(std::vector<IValue> items) : items_(std::move(items)) {}
    const std::vector<IValue> &elements() const { return items_; }
    size_t size() const { return items_.size(); }

   private:
    std::vector<IValue> items_;
  };
  std::shared_ptr<Tuple> toTuple() const { return std::make_shared<Tuple>(items()); }
  Tuple toTupleRef() const { return Tuple(items()); }

  // A dict's entries, as `toGenericDict()` gives them in libtorch.
  class Entry {
   public:
    Entry(IValue key, IValue value);
    const IValue &key() const;
    const IValue &value() const;

   private:
    std::shared_ptr<std::pair<IValue, IValue>> pair_;
  };
  class Dict {
   public:
    explicit Dict(std::vector<Entry> entries) : entries_(std::move(entries)) {}
    std::vector<Entry>::const_iterator begin() const { return entries_.begin(); }
    std::vector<Entry>::const_iterator end() const { return entries_.end(); }
    size_t size() const { return entries_.size(); }
    bool contains(const IValue &key) const { return find(key) != nullptr; }
    const IValue &at(const IValue &key) const {
      const IValue *found = find(key);
      if (found == nullptr) throw Error("the dict has no key " + key.text());
      return *found;
    }

   private:
    const IValue *find(const IValue &key) const {
      for (const Entry &entry : entries_)
        if (entry.key().kind() == key.kind() && entry.key().text() == key.text()) return &entry.value();
      return nullptr;
    }
    std::vector<Entry> entries_;
  };
  Dict toGenericDict() const;

  // The submodule that an attribute holds.
  Module toModule() const;

  // What print() writes.
  std::string text() const {
    size_t size = 0;
    const char *from = flambeau_as_string(handle_.get(), &size);
    if (from == nullptr) detail::fail();
    return std::string(from, size);
  }
  friend std::ostream &operator<<(std::ostream &out, const IValue &value) { return out << value.text(); }

  const flambeau_value *get() const { return handle_.get(); }
  const detail::Handle &handle() const { return handle_; }

 private:
  template <typename Items>
  static IValue collect(flambeau_kind kind, const Items &items) {
    std::vector<IValue> owned;
    for (const auto &item : items) owned.push_back(IValue(item));
    std::vector<const flambeau_value *> handles;
    for (const IValue &item : owned) handles.push_back(item.get());
    return IValue(detail::own(flambeau_collect(kind, handles.data(), handles.size())));
  }
  template <typename T, typename F>
  std::vector<T> each(F convert) const {
    std::vector<T> out;
    for (const IValue &item : items()) out.push_back(convert(item));
    return out;
  }
  friend class Module;
  detail::Handle handle_;
  // Of an attribute: whose it is, and its path.
  std::shared_ptr<flambeau_module> owner_;
  std::string path_;
};

inline IValue::Entry::Entry(IValue key, IValue value)
    : pair_(std::make_shared<std::pair<IValue, IValue>>(std::move(key), std::move(value))) {}
inline const IValue &IValue::Entry::key() const { return pair_->first; }
inline const IValue &IValue::Entry::value() const { return pair_->second; }
inline IValue::Dict IValue::toGenericDict() const {
  if (!isGenericDict()) throw Error("the value is not a dict: " + text());
  std::vector<IValue> flat = items();
  std::vector<Entry> entries;
  for (size_t n = 0; n + 1 < flat.size(); n += 2) entries.emplace_back(flat[n], flat[n + 1]);
  return Dict(std::move(entries));
}

// A tensor. Copies share their elements, as libtorch's do.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(IValue value) : value_(std::move(value)), array_(new flambeau_array()) {
    if (!value_->isTensor()) throw Error("the value is not a tensor: " + value_->text());
    if (flambeau_as_array(value_->get(), array_.get()) != 0) {
      // Quantized tensors are passed on and printed; their elements are not looked at.
      array_.reset();
    }
  }

  bool defined() const { return value_.has_value(); }
  int64_t dim() const { return array().rank; }
  IntArrayRef sizes() const { return IntArrayRef(array().sizes, array().rank); }
  IntArrayRef strides() const { return IntArrayRef(array().strides, array().rank); }
  int64_t size(int64_t at) const { return sizes()[wrap(at)]; }
  int64_t stride(int64_t at) const { return strides()[wrap(at)]; }
  int64_t numel() const { return flambeau_length(value().get()); }
  ScalarType scalar_type() const { return static_cast<ScalarType>(array().dtype); }
  ScalarType dtype() const { return scalar_type(); }
  Device device() const { return Device(DeviceType::CPU); }
  bool is_contiguous() const {
    int64_t expected = 1;
    for (int64_t at = dim() - 1; at >= 0; --at) {
      if (size(at) != 1 && stride(at) != expected) return false;
      expected *= std::max<int64_t>(size(at), 1);
    }
    return true;
  }

  // The element with all indices 0; the type is checked.
  template <typename T>
  T *data_ptr() const {
    if (detail::TypeOf<std::remove_const_t<T>>::value != scalar_type()) {
      throw Error("expected scalar type does not match the tensor's: found " + dtype_name());
    }
    return static_cast<T *>(array().data);
  }
  void *data_ptr() const { return array().data; }
  template <typename T>
  const T *const_data_ptr() const { return data_ptr<T>(); }

  // The one element, converted.
  template <typename T>
  T item() const {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(value().toDouble());
    } else {
      return static_cast<T>(value().toInt());
    }
  }

  // Elements by their indices.
  template <typename T, size_t N>
  class Accessor {
   public:
    Accessor(T *data, const int64_t *sizes, const int64_t *strides) : data_(data), sizes_(sizes), strides_(strides) {}
    decltype(auto) operator[](int64_t at) const {
      if constexpr (N == 1) {
        return (data_[at * strides_[0]]);
      } else {
        return Accessor<T, N - 1>(data_ + at * strides_[0], sizes_ + 1, strides_ + 1);
      }
    }
    int64_t size(int64_t at) const { return sizes_[at]; }

   private:
    T *data_;
    const int64_t *sizes_, *strides_;
  };
  template <typename T, size_t N>
  Accessor<T, N> accessor() const {
    if (dim() != static_cast<int64_t>(N)) throw Error("the tensor has " + std::to_string(dim()) + " dimensions");
    return Accessor<T, N>(data_ptr<T>(), array().sizes, array().strides);
  }

  Tensor contiguous() const { return method("contiguous"); }
  Tensor clone() const { return method("clone"); }
  Tensor detach() const { return method("detach"); }
  Tensor cpu() const { return *this; }
  Tensor to(Device) const { return *this; }
  Tensor to(ScalarType type) const { return method("to", {type, false, false, IValue()}); }
  Tensor toType(ScalarType type) const { return to(type); }
  Tensor view(IntArrayRef sizes) const { return method("view", {sizes}); }
  Tensor reshape(IntArrayRef sizes) const { return method("reshape", {sizes}); }
  Tensor permute(IntArrayRef order) const { return method("permute", {order}); }
  Tensor expand(IntArrayRef sizes) const { return method("expand", {sizes, false}); }
  Tensor transpose(int64_t a, int64_t b) const { return method("transpose", {a, b}); }
  Tensor t() const { return method("t"); }
  Tensor flatten(int64_t from = 0, int64_t to = -1) const { return method("flatten", {from, to}); }
  Tensor squeeze() const { return method("squeeze"); }
  Tensor squeeze(int64_t at) const { return method("squeeze", {at}); }
  Tensor unsqueeze(int64_t at) const { return method("unsqueeze", {at}); }
  Tensor select(int64_t dim, int64_t at) const { return method("select", {dim, at}); }
  Tensor slice(int64_t dim = 0, std::optional<int64_t> from = std::nullopt, std::optional<int64_t> to = std::nullopt,
               int64_t step = 1) const {
    return method("slice", {dim, from, to, step});
  }
  Tensor operator[](int64_t at) const { return select(0, at); }
  Tensor softmax(int64_t dim) const { return method("softmax", {dim, IValue()}); }
  Tensor argmax() const { return method("argmax", {IValue(), false}); }
  Tensor argmax(int64_t dim, bool keepdim = false) const { return method("argmax", {dim, keepdim}); }
  Tensor sum() const { return method("sum"); }
  Tensor mean() const { return method("mean"); }
  Tensor max() const { return method("max"); }
  Tensor min() const { return method("min"); }
  std::tuple<Tensor, Tensor> max(int64_t dim, bool keepdim = false) const { return pair("max", {dim, keepdim}); }
  std::tuple<Tensor, Tensor> topk(int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true) const {
    return pair("topk", {k, dim, largest, sorted});
  }
  Tensor add(const Tensor &x) const { return method("add", {x}); }
  Tensor sub(const Tensor &x) const { return method("sub", {x}); }
  Tensor mul(const Tensor &x) const { return method("mul", {x}); }
  Tensor div(const Tensor &x) const { return method("div", {x}); }
  Tensor matmul(const Tensor &x) const { return method("matmul", {x}); }
  Tensor eq(const Tensor &x) const { return method("eq", {x}); }
  Tensor abs() const { return method("abs"); }
  Tensor exp() const { return method("exp"); }
  Tensor relu() const { return method("relu"); }
  Tensor sigmoid() const { return method("sigmoid"); }
  Tensor tanh() const { return method("tanh"); }
  Tensor &add_(const Tensor &x) { return in_place("add_", {x}); }
  Tensor &mul_(const Tensor &x) { return in_place("mul_", {x}); }
  Tensor &mul_(double x) { return in_place("mul_", {x}); }
  Tensor &sub_(double x) { return in_place("sub_", {x}); }
  Tensor &div_(double x) { return in_place("div_", {x}); }
  Tensor &fill_(double x) { return in_place("fill_", {x}); }
  Tensor &copy_(const Tensor &x) { return in_place("copy_", {x, false}); }
  bool equal(const Tensor &x) const;
  bool allclose(const Tensor &x, double rtol = 1e-5, double atol = 1e-8) const;

  friend Tensor operator+(const Tensor &a, const IValue &b) { return a.method("add", {b}); }
  friend Tensor operator-(const Tensor &a, const IValue &b) { return a.method("sub", {b}); }
  friend Tensor operator*(const Tensor &a, const IValue &b) { return a.method("mul", {b}); }
  friend Tensor operator/(const Tensor &a, const IValue &b) { return a.method("div", {b}); }
  friend std::ostream &operator<<(std::ostream &out, const Tensor &x) {
    return x.defined() ? out << x.value().text() : out << "[ Tensor (undefined) ]";
  }

  const IValue &value() const {
    if (!value_) throw Error("the tensor is undefined");
    return *value_;
  }

 private:
  const flambeau_array &array() const {
    (void)value();
    if (!array_) throw Error("the elements of this tensor are not laid out as an array");
    return *array_;
  }
  size_t wrap(int64_t at) const {
    if (at < -dim() || at >= dim()) throw Error("Dimension out of range");
    return static_cast<size_t>(at < 0 ? at + dim() : at);
  }
  std::string dtype_name() const { return std::to_string(static_cast<int>(scalar_type())); }
  IValue call(const char *name, std::vector<IValue> arguments) const {
    arguments.insert(arguments.begin(), value());
    return op(std::string("aten::") + name, arguments);
  }
  Tensor method(const char *name, std::vector<IValue> arguments = {}) const {
    return call(name, std::move(arguments)).toTensor();
  }
  std::tuple<Tensor, Tensor> pair(const char *name, std::vector<IValue> arguments) const {
    std::vector<IValue> items = call(name, std::move(arguments)).items();
    return {items.at(0).toTensor(), items.at(1).toTensor()};
  }
  Tensor &in_place(const char *name, std::vector<IValue> arguments) {
    call(name, std::move(arguments));
    return *this;
  }
  std::optional<IValue> value_;
  std::shared_ptr<flambeau_array> array_;
};

inline IValue::IValue(Tensor tensor) : IValue(tensor.defined() ? tensor.value() : IValue()) {}
inline Tensor IValue::toTensor() const { return Tensor(*this); }
inline std::vector<Tensor> IValue::toTensorVector() const {
  return each<Tensor>([](const IValue &x) { return x.toTensor(); });
}

inline IValue op(const std::string &name, const std::vector<IValue> &arguments) {
  std::vector<const flambeau_value *> handles;
  for (const IValue &argument : arguments) handles.push_back(argument.get());
  return IValue(detail::own(flambeau_module_call(nullptr, name.c_str(), handles.data(), handles.size())));
}

inline bool Tensor::equal(const Tensor &x) const { return op("aten::equal", {value(), x.value()}).toBool(); }
inline bool Tensor::allclose(const Tensor &x, double rtol, double atol) const {
  return op("aten::allclose", {value(), x.value(), rtol, atol, false}).toBool();
}

// ---- tensors from memory ----

namespace detail {

inline void release(void *context) {
  std::unique_ptr<std::function<void(void *)>> deleter(static_cast<std::function<void(void *)> *>(context));
  (*deleter)(nullptr);
}

inline Tensor blob(void *data, IntArrayRef sizes, const int64_t *strides, std::function<void(void *)> deleter,
                   TensorOptions options) {
  flambeau_array array{data, static_cast<int>(options.type()), static_cast<int>(sizes.size()), sizes.data(), strides};
  if (!deleter) return Tensor(IValue(own(flambeau_tensor(&array, nullptr, nullptr))));
  auto *kept = new std::function<void(void *)>([deleter, data](void *) { deleter(data); });
  return Tensor(IValue(own(flambeau_tensor(&array, release, kept))));
}

}  // namespace detail

// A tensor over memory of the caller, who keeps it while the tensor or anything that shares its elements lives.
inline Tensor from_blob(void *data, IntArrayRef sizes, TensorOptions options = TensorOptions()) {
  return detail::blob(data, sizes, nullptr, nullptr, options);
}
// The same; `deleter(data)` is called when the memory is not needed any more.
inline Tensor from_blob(void *data, IntArrayRef sizes, std::function<void(void *)> deleter,
                        TensorOptions options = TensorOptions()) {
  return detail::blob(data, sizes, nullptr, std::move(deleter), options);
}
// The same with strides in elements.
inline Tensor from_blob(void *data, IntArrayRef sizes, IntArrayRef strides, TensorOptions options = TensorOptions()) {
  if (strides.size() != sizes.size()) throw Error("there is one stride for each size");
  return detail::blob(data, sizes, strides.data(), nullptr, options);
}

inline Tensor zeros(IntArrayRef sizes, TensorOptions options = TensorOptions()) {
  return op("aten::zeros(dtype=)", {sizes, options.type()}).toTensor();
}
inline Tensor ones(IntArrayRef sizes, TensorOptions options = TensorOptions()) {
  return op("aten::ones(dtype=)", {sizes, options.type()}).toTensor();
}
inline Tensor empty(IntArrayRef sizes, TensorOptions options = TensorOptions()) { return zeros(sizes, options); }
inline Tensor full(IntArrayRef sizes, double value, TensorOptions options = TensorOptions()) {
  return op("aten::full(dtype=)", {sizes, value, options.type()}).toTensor();
}
inline Tensor rand(IntArrayRef sizes, TensorOptions options = TensorOptions()) {
  return op("aten::rand(dtype=)", {sizes, options.type()}).toTensor();
}
inline Tensor randn(IntArrayRef sizes, TensorOptions options = TensorOptions()) {
  return op("aten::randn(dtype=)", {sizes, options.type()}).toTensor();
}
inline Tensor arange(int64_t end, TensorOptions options = TensorOptions(kLong)) {
  return op("aten::arange(dtype=)", {end, options.type()}).toTensor();
}
inline void manual_seed(int64_t seed) { op("aten::manual_seed", {seed}); }

namespace detail {

// What libtorch makes of numbers of C++ where no dtype is asked for.
template <typename T>
constexpr ScalarType literal() {
  return std::is_same_v<T, bool> ? kBool : std::is_integral_v<T> ? kLong : std::is_floating_point_v<T> ? kFloat : TypeOf<T>::value;
}

}  // namespace detail

// A tensor of numbers, which are copied.
template <typename T>
Tensor tensor(const std::vector<T> &numbers, TensorOptions options = TensorOptions(detail::literal<T>())) {
  auto *kept = new std::vector<T>(numbers);
  int64_t size = static_cast<int64_t>(kept->size());
  Tensor made = from_blob(kept->data(), {size}, [kept](void *) { delete kept; }, detail::TypeOf<T>::value);
  return options.type() == detail::TypeOf<T>::value ? made : made.to(options.type());
}
template <typename T>
Tensor tensor(std::initializer_list<T> numbers, TensorOptions options = TensorOptions(detail::literal<T>())) {
  return tensor(std::vector<T>(numbers), options);
}

inline Tensor cat(const std::vector<Tensor> &tensors, int64_t dim = 0) {
  return op("aten::cat", {tensors, dim}).toTensor();
}
inline Tensor stack(const std::vector<Tensor> &tensors, int64_t dim = 0) {
  return op("aten::stack", {tensors, dim}).toTensor();
}
inline Tensor softmax(const Tensor &x, int64_t dim) { return x.softmax(dim); }
inline Tensor argmax(const Tensor &x, int64_t dim) { return x.argmax(dim); }
inline Tensor matmul(const Tensor &a, const Tensor &b) { return a.matmul(b); }
inline Tensor relu(const Tensor &x) { return x.relu(); }
inline Tensor sigmoid(const Tensor &x) { return x.sigmoid(); }
inline std::tuple<Tensor, Tensor> topk(const Tensor &x, int64_t k, int64_t dim = -1) { return x.topk(k, dim); }
inline bool equal(const Tensor &a, const Tensor &b) { return a.equal(b); }
inline bool allclose(const Tensor &a, const Tensor &b, double rtol = 1e-5, double atol = 1e-8) {
  return a.allclose(b, rtol, atol);
}

// Calls record no gradients in any case: these are for programs that say so.
class NoGradGuard {
 public:
  NoGradGuard() {}
};
class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true) { (void)enabled; }
};

// ---- modules ----

// A method of a module, to be called.
class Method {
 public:
  Method(std::shared_ptr<flambeau_module> module, std::string name) : module_(std::move(module)), name_(std::move(name)) {}
  const std::string &name() const { return name_; }
  const std::shared_ptr<flambeau_module> &module() const { return module_; }
  IValue operator()(const std::vector<IValue> &arguments) const {
    std::vector<const flambeau_value *> handles;
    for (const IValue &argument : arguments) handles.push_back(argument.get());
    return IValue(
        detail::own(flambeau_module_call(module_.get(), name_.c_str(), handles.data(), handles.size())));
  }

 private:
  std::shared_ptr<flambeau_module> module_;
  std::string name_;
};

// A loaded program. Copies are the same program.
class Module {
 public:
  Module() = default;
  explicit Module(flambeau_module *module) : module_(module, flambeau_module_free) {
    if (module == nullptr) detail::fail();
  }
  IValue forward(const std::vector<IValue> &arguments) const { return get_method("forward")(arguments); }
  IValue operator()(const std::vector<IValue> &arguments) const { return forward(arguments); }
  Method get_method(const std::string &name) const {
    if (!module_) throw Error("the module is empty: nothing was loaded into it");
    return Method(module_, path_.empty() ? name : path_ + "." + name);
  }
  template <typename... Arguments>
  IValue run_method(const std::string &name, Arguments &&...arguments) const {
    return get_method(name)({IValue(std::forward<Arguments>(arguments))...});
  }
  // An attribute by its path, `encoder.layer.weight`.
  IValue attr(const std::string &name) const {
    std::string path = get_method(name).name();
    IValue found(detail::own(flambeau_module_attribute(module_.get(), path.c_str())));
    found.owner_ = module_;
    found.path_ = path;
    return found;
  }
  bool hasattr(const std::string &name) const {
    flambeau_value *found = flambeau_module_attribute(module_.get(), get_method(name).name().c_str());
    flambeau_value_free(found);
    return found != nullptr;
  }
  // Sets training mode, of submodules as well.
  void train(bool on = true) {
    if (!path_.empty()) throw Error("training mode is set for a whole module, not for '" + path_ + "' alone");
    detail::check(flambeau_module_train(get_method("").module().get(), on));
  }
  void eval() { train(false); }
  bool is_training() const { return attr("training").toBool(); }
  void save(const std::string &path) const {
    if (!path_.empty()) throw Error("a whole module is saved, not '" + path_ + "' alone");
    detail::check(flambeau_module_save(module_.get(), path.c_str()));
  }
  void to(Device) const {}

 private:
  friend class IValue;
  std::shared_ptr<flambeau_module> module_;
  // Of a submodule: where it is in the program.
  std::string path_;
};

inline Module IValue::toModule() const {
  if (!owner_ || kind() != FLAMBEAU_OTHER) throw Error("the value is not an attribute that holds a module: " + text());
  Module out;
  out.module_ = owner_;
  out.path_ = path_;
  return out;
}

inline Module load(const std::string &path) { return Module(flambeau_load(path.c_str())); }
inline Module load(const std::string &path, Device) { return load(path); }
inline Module load(std::istream &in) {
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return Module(flambeau_load_bytes(bytes.data(), bytes.size(), "<stream>"));
}
// The functions of TorchScript source.
inline std::shared_ptr<Module> compile(const std::string &source) {
  return std::make_shared<Module>(flambeau_load_bytes(source.data(), source.size(), "<string>"));
}

}  // namespace flambeau

#ifndef FLAMBEAU_NO_TORCH_NAMES
namespace c10 {
using flambeau::ArrayRef;
using flambeau::Device;
using flambeau::DeviceType;
using flambeau::Error;
using flambeau::InferenceMode;
using flambeau::IntArrayRef;
using flambeau::IValue;
using flambeau::ScalarType;
using flambeau::TensorOptions;
}  // namespace c10
namespace at {
using namespace flambeau;
}
namespace torch {
using namespace flambeau;
namespace jit {
using flambeau::compile;
using flambeau::IValue;
using flambeau::load;
using flambeau::Method;
using flambeau::Module;
using flambeau::Tensor;
namespace script {
using flambeau::Method;
using flambeau::Module;
}  // namespace script
}  // namespace jit
}  // namespace torch
#endif

#endif  // FLAMBEAU_HPP
