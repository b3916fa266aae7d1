#include "io/hdf5_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/printable.hpp"

namespace lockstep::io {
namespace {

using core::DType;

TypeId copy_of(hid_t type) { return TypeId{H5Tcopy(type)}; }

/// IEEE 754 binary16 in the byte order of the float32 type `like`.
TypeId make_float16(hid_t like) {
  TypeId type = copy_of(like);
  H5Tset_fields(type.get(), 15, 10, 5, 0, 10);
  H5Tset_size(type.get(), 2);
  H5Tset_ebias(type.get(), 15);
  return type;
}

const char* name_of(H5T_class_t kind) {
  switch (kind) {
    case H5T_INTEGER: return "integer";
    case H5T_FLOAT: return "floating-point";
    case H5T_STRING: return "text";
    case H5T_COMPOUND: return "compound";
    case H5T_REFERENCE: return "reference";
    case H5T_ENUM: return "enumerated";
    case H5T_VLEN: return "variable-length";
    case H5T_ARRAY: return "array";
    default: return "opaque";
  }
}

std::string member_name(hid_t enumeration, unsigned member) {
  char* const name = H5Tget_member_name(enumeration, member);
  std::string text = name != nullptr ? name : "";
  H5free_memory(name);
  return text;
}

/// Whether it is h5py's type for bool: a byte that is FALSE = 0 or TRUE = 1.
bool is_bool(hid_t enumeration) {
  if (H5Tget_nmembers(enumeration) != 2 || H5Tget_size(enumeration) != 1) return false;
  for (unsigned member = 0; member < 2; ++member) {
    unsigned char value = 0;
    if (H5Tget_member_value(enumeration, member, &value) < 0 || value > 1) return false;
    if (member_name(enumeration, member) != (value == 0 ? "FALSE" : "TRUE")) return false;
  }
  return true;
}

/// The first members: " (setosa, virginica, ...)".
std::string describe_members(hid_t enumeration) {
  constexpr int most_shown = 3;
  const int n = H5Tget_nmembers(enumeration);
  std::string text;
  for (int member = 0; member < std::min(n, most_shown); ++member)
    text += (text.empty() ? "" : ", ") + member_name(enumeration, static_cast<unsigned>(member));
  return fmt::format(" ({}{})", core::printable(text), n > most_shown ? ", ..." : "");
}

}  // namespace

std::string describe_elements(hid_t type) {
  const std::size_t bytes = H5Tget_size(type);
  const H5T_class_t kind = H5Tget_class(type);
  return fmt::format("{} elements of {} byte{}{}", name_of(kind), bytes, bytes == 1 ? "" : "s",
                     kind == H5T_ENUM ? describe_members(type) : "");
}

TypeId type_in_file(DType dtype) {
  switch (dtype) {
    case DType::int8: return copy_of(H5T_STD_I8LE);
    case DType::uint8: return copy_of(H5T_STD_U8LE);
    case DType::int16: return copy_of(H5T_STD_I16LE);
    case DType::bfloat16:
    case DType::uint16: return copy_of(H5T_STD_U16LE);
    case DType::int32: return copy_of(H5T_STD_I32LE);
    case DType::uint32: return copy_of(H5T_STD_U32LE);
    case DType::int64: return copy_of(H5T_STD_I64LE);
    case DType::uint64: return copy_of(H5T_STD_U64LE);
    case DType::float16: return make_float16(H5T_IEEE_F32LE);
    case DType::float32: return copy_of(H5T_IEEE_F32LE);
    case DType::float64: break;
  }
  return copy_of(H5T_IEEE_F64LE);
}

TypeId type_in_memory(DType dtype) {
  TypeId type = type_in_file(dtype);
  H5Tset_order(type.get(), H5Tget_order(H5T_NATIVE_INT));
  return type;
}

std::optional<DType> find_dtype(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_ENUM) return is_bool(type) ? std::optional{DType::uint8} : std::nullopt;
  if (kind != H5T_INTEGER && kind != H5T_FLOAT) return std::nullopt;
  const TypeId little = copy_of(type);
  if (H5Tset_order(little.get(), H5T_ORDER_LE) < 0) return std::nullopt;
  for (const DType dtype : core::all_dtypes)
    if (dtype != DType::bfloat16 && H5Tequal(little.get(), type_in_file(dtype).get()) > 0) return dtype;
  return std::nullopt;
}

}  // namespace lockstep::io
