// Functions that the tests of `ffi` register.
#include <cstdint>
#include <memory>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using F32 = ffi::Buffer<ffi::F32>;
using OutF32 = ffi::Result<ffi::Buffer<ffi::F32>>;

#define HANDLER(name, function, binding) XLA_FFI_DEFINE_HANDLER_SYMBOL(name, function, binding)

static ffi::Error ScaleImpl(float factor, F32 x, OutF32 y) {
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = FACTOR * factor * x.typed_data()[i];
  return ffi::Error::Success();
}
HANDLER(Scale, ScaleImpl, ffi::Ffi::Bind().Attr<float>("factor").Arg<F32>().Ret<F32>());

// Sums over the last axis, and how often this was called.
static int32_t calls = 0;
static ffi::Error SumsImpl(F32 x, OutF32 sums, ffi::Result<ffi::Buffer<ffi::S32>> count) {
  size_t last = x.dimensions().back();
  ++calls;
  for (size_t i = 0; i < sums->element_count(); ++i) {
    float total = 0;
    for (size_t j = 0; j < last; ++j) total += x.typed_data()[i * last + j];
    sums->typed_data()[i] = total;
  }
  for (size_t i = 0; i < count->element_count(); ++i) count->typed_data()[i] = calls;
  return ffi::Error::Success();
}
HANDLER(Sums, SumsImpl, ffi::Ffi::Bind().Arg<F32>().Ret<F32>().Ret<ffi::Buffer<ffi::S32>>());

// x + y, where one may have fewer elements; the number of elements of y comes back, too.
static ffi::Error AddImpl(F32 x, F32 y, OutF32 z, ffi::Result<ffi::Buffer<ffi::S32>> given) {
  size_t m = x.element_count(), n = y.element_count();
  for (size_t i = 0; i < z->element_count(); ++i) z->typed_data()[i] = x.typed_data()[i % m] + y.typed_data()[i % n];
  for (size_t i = 0; i < given->element_count(); ++i) given->typed_data()[i] = n;
  return ffi::Error::Success();
}
HANDLER(Add, AddImpl, ffi::Ffi::Bind().Arg<F32>().Arg<F32>().Ret<F32>().Ret<ffi::Buffer<ffi::S32>>());

// Adds 1 in place, and says whether the result has the memory of the argument.
static ffi::Error InPlaceImpl(F32 x, OutF32 y, ffi::Result<ffi::Buffer<ffi::S32>> same) {
  same->typed_data()[0] = x.untyped_data() == y->untyped_data();
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = x.typed_data()[i] + 1;
  return ffi::Error::Success();
}
HANDLER(InPlace, InPlaceImpl, ffi::Ffi::Bind().Arg<F32>().Ret<F32>().Ret<ffi::Buffer<ffi::S32>>());

// The elements as they lie in memory.
static ffi::Error MemoryImpl(F32 x, OutF32 y) {
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = x.typed_data()[i];
  return ffi::Error::Success();
}
HANDLER(Memory, MemoryImpl, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());

static ffi::Error AttributesImpl(ffi::Span<const int64_t> numbers, std::string_view text, bool flag, int32_t small,
                                 double wide, OutF32 y) {
  float total = static_cast<float>(text.size()) + (flag ? 100 : 0) + small + static_cast<float>(wide);
  for (int64_t n : numbers) total += n;
  y->typed_data()[0] = total;
  return ffi::Error::Success();
}
HANDLER(Attributes, AttributesImpl,
        ffi::Ffi::Bind().Attr<ffi::Span<const int64_t>>("numbers").Attr<std::string_view>("text").Attr<bool>("flag")
            .Attr<int32_t>("small").Attr<double>("wide").Ret<F32>());

static ffi::Error FailImpl(F32 x, OutF32 y) { return ffi::Error::InvalidArgument("nothing will do"); }
HANDLER(Fail, FailImpl, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());

static ffi::Error NoteImpl(F32 x) {
  calls += static_cast<int32_t>(x.typed_data()[0]);
  return ffi::Error::Success();
}
HANDLER(Note, NoteImpl, ffi::Ffi::Bind().Arg<F32>());

extern "C" int32_t Calls() { return calls; }

// An object that is made once for a program, and used by each call.
struct Counter {
  static ffi::TypeId id;
  int32_t next;
};
ffi::TypeId Counter::id = {};
static ffi::TypeInfo counter_info = ffi::MakeTypeInfo<Counter>();
extern "C" void* CounterId() { return &Counter::id; }
extern "C" void* CounterInfo() { return &counter_info; }

static ffi::ErrorOr<std::unique_ptr<Counter>> StartImpl(int32_t start) {
  return std::make_unique<Counter>(Counter{start});
}
HANDLER(Start, StartImpl, ffi::Ffi::BindInstantiate().Attr<int32_t>("start"));

static ffi::Error CountImpl(Counter* counter, int32_t start, ffi::Result<ffi::Buffer<ffi::S32>> y) {
  y->typed_data()[0] = counter->next++;
  return ffi::Error::Success();
}
HANDLER(Count, CountImpl,
        ffi::Ffi::Bind().Ctx<ffi::State<Counter>>().Attr<int32_t>("start").Ret<ffi::Buffer<ffi::S32>>());
