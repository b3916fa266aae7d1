#include "io/hdf5_attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::io {
namespace {

void write(const Place& place, hid_t object, const std::string& name, hid_t type, hid_t memory_type,
           const void* value) {
  const std::string action = fmt::format("write attribute '{}'", name);
  const SpaceId space{checked(place, action, [] { return H5Screate(H5S_SCALAR); })};
  const bool exists = checked(place, action, [&] { return H5Aexists(object, name.c_str()); }) > 0;
  if (exists) checked(place, action, [&] { return H5Adelete(object, name.c_str()); });
  const AttributeId attribute{checked(
      place, action, [&] { return H5Acreate2(object, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT); })};
  checked(place, action, [&] { return H5Awrite(attribute.get(), memory_type, value); });
}

struct Single {
  AttributeId attribute;
  TypeId type;
};

/// Returns nothing if there is no attribute of this name, or it holds several values.
std::optional<Single> open_single(const Place& place, hid_t object, const std::string& name) {
  const std::string action = fmt::format("read attribute '{}'", name);
  if (checked(place, action, [&] { return H5Aexists(object, name.c_str()); }) == 0) return std::nullopt;
  AttributeId attribute{checked(place, action, [&] { return H5Aopen(object, name.c_str(), H5P_DEFAULT); })};
  const SpaceId space{checked(place, action, [&] { return H5Aget_space(attribute.get()); })};
  TypeId type{checked(place, action, [&] { return H5Aget_type(attribute.get()); })};
  const Silence silence;
  if (H5Sget_simple_extent_npoints(space.get()) != 1) return std::nullopt;
  return Single{std::move(attribute), std::move(type)};
}

/// Foreign files store texts of variable length, which the library allocates.
std::optional<std::string> read_variable(hid_t attribute, hid_t type) {
  char* text = nullptr;
  if (H5Aread(attribute, type, &text) < 0) return std::nullopt;
  std::string value = text != nullptr ? text : "";
  H5free_memory(text);
  return value;
}

std::optional<std::string> read_fixed(hid_t attribute, hid_t type) {
  std::string value(H5Tget_size(type), '\0');
  if (H5Aread(attribute, type, value.data()) < 0) return std::nullopt;
  value.resize(std::min(value.find('\0'), value.size()));
  return value;
}

}  // namespace

void write_attribute(const Place& place, hid_t object, const std::string& name, const std::string& value) {
  const TypeId type{checked(place, "make a text type", [] { return H5Tcopy(H5T_C_S1); })};
  checked(place, "make a text type", [&] {
    H5Tset_cset(type.get(), H5T_CSET_UTF8);
    return H5Tset_size(type.get(), value.size() + 1);
  });
  write(place, object, name, type.get(), type.get(), value.c_str());
}

void write_attribute(const Place& place, hid_t object, const std::string& name, std::uint64_t value) {
  prepare_hdf5();
  write(place, object, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, &value);
}

std::optional<std::string> read_text_attribute(const Place& place, hid_t object, const std::string& name) {
  const std::optional<Single> single = open_single(place, object, name);
  const Silence silence;
  if (!single || H5Tget_class(single->type.get()) != H5T_STRING) return std::nullopt;
  const bool is_variable = H5Tis_variable_str(single->type.get()) > 0;
  return is_variable ? read_variable(single->attribute.get(), single->type.get())
                     : read_fixed(single->attribute.get(), single->type.get());
}

std::optional<std::uint64_t> read_number_attribute(const Place& place, hid_t object, const std::string& name) {
  const std::optional<Single> single = open_single(place, object, name);
  const Silence silence;
  std::uint64_t value = 0;
  if (!single || H5Tget_class(single->type.get()) != H5T_INTEGER) return std::nullopt;
  if (H5Aread(single->attribute.get(), H5T_NATIVE_UINT64, &value) < 0) return std::nullopt;
  return value;
}

}  // namespace lockstep::io
