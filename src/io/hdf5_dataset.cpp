#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/hdf5.hpp"
#include "io/hdf5_attributes.hpp"
#include "io/hdf5_dataset_state.hpp"
#include "io/hdf5_types.hpp"
#include "io/hdf5_written.hpp"

namespace lockstep::io {
namespace {

static_assert(sizeof(hsize_t) == sizeof(std::uint64_t));

/// Converts dimensions to the library's type.
std::vector<hsize_t> to_sizes(const Dimensions& dimensions) { return {dimensions.begin(), dimensions.end()}; }

Dimensions read_dimensions(const Place& place, hid_t dataset) {
  const SpaceId space{checked(place, "read the shape", [&] { return H5Dget_space(dataset); })};
  const int n = checked(place, "read the shape", [&] { return H5Sget_simple_extent_ndims(space.get()); });
  std::vector<hsize_t> sizes(static_cast<std::size_t>(n));
  checked(place, "read the shape", [&] { return H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr); });
  return {sizes.begin(), sizes.end()};
}

/// Empty if the data set is not chunked.
Dimensions read_chunk_shape(const Place& place, hid_t dataset, std::size_t n_dimensions) {
  const ListId list{checked(place, "read the layout", [&] { return H5Dget_create_plist(dataset); })};
  if (H5Pget_layout(list.get()) != H5D_CHUNKED) return {};
  std::vector<hsize_t> sizes(n_dimensions);
  checked(place, "read the layout",
          [&] { return H5Pget_chunk(list.get(), static_cast<int>(sizes.size()), sizes.data()); });
  return {sizes.begin(), sizes.end()};
}

std::optional<core::DType> read_dtype(const Place& place, hid_t dataset) {
  const TypeId type{checked(place, "read the element type", [&] { return H5Dget_type(dataset); })};
  const Silence silence;
  const std::optional<core::DType> dtype = find_dtype(type.get());
  if (dtype == core::DType::uint16 && read_text_attribute(place, dataset, dtype_attribute) == "bfloat16")
    return core::DType::bfloat16;
  return dtype;
}

std::uint64_t bytes_of_row(const Place& place, core::DType dtype, const Dimensions& dimensions) {
  std::uint64_t bytes = core::size_of(dtype);
  for (std::size_t i = 1; i < dimensions.size(); ++i) {
    if (__builtin_mul_overflow(bytes, dimensions[i], &bytes))
      core::fail_usage({.what = "a row has more than 2^64 bytes", .where = describe(place)});
  }
  return bytes;
}

[[noreturn]] void fail_usage_at(const Place& place, std::string what, std::string expected) {
  core::fail_usage({.what = std::move(what), .where = describe(place), .expected = std::move(expected)});
}

Extent find_contiguous(const Place& place, hid_t dataset) {
  const Silence silence;
  const haddr_t address = H5Dget_offset(dataset);
  const hsize_t bytes = H5Dget_storage_size(dataset);
  if (bytes == 0) return {};
  if (address == HADDR_UNDEF)
    fail_usage_at(place, "its data are not stored in one place", "contiguous or chunked data");
  return {address, bytes};
}

/// `offset`: its first element.
Extent find_chunk(const Place& place, hid_t dataset, std::uint64_t chunk, const hsize_t* offset) {
  unsigned mask = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t bytes = 0;
  checked(place, fmt::format("find chunk {}", chunk),
          [&] { return H5Dget_chunk_info_by_coord(dataset, offset, &mask, &address, &bytes); });
  if (address == HADDR_UNDEF)
    throw core::Error{place.code, {.what = fmt::format("chunk {} was never written", chunk), .where = describe(place)}};
  return {address, bytes};
}

}  // namespace

std::unique_ptr<Hdf5Dataset::State> Hdf5Dataset::State::describe(Place place, DatasetId id) {
  auto state = std::make_unique<State>();
  state->dimensions = read_dimensions(place, id.get());
  state->chunk = read_chunk_shape(place, id.get(), state->dimensions.size());
  state->dtype = read_dtype(place, id.get());
  if (state->dtype) state->row_bytes = bytes_of_row(place, *state->dtype, state->dimensions);
  state->place = std::move(place);
  state->id = std::move(id);
  return state;
}

Hdf5Dataset::State::Rows Hdf5Dataset::State::select(std::uint64_t first, std::uint64_t n, const std::string& action,
                                                    std::size_t dimension) const {
  std::vector<hsize_t> count = to_sizes(dimensions);
  count.at(dimension) = n;
  std::vector<hsize_t> start(count.size(), 0);
  start.at(dimension) = first;
  const auto rank = static_cast<int>(count.size());
  Rows rows{SpaceId{checked(place, action, [&] { return H5Screate_simple(rank, count.data(), nullptr); })},
            SpaceId{checked(place, action, [&] { return H5Dget_space(id.get()); })}};
  checked(place, action, [&] {
    return H5Sselect_hyperslab(rows.file.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
  });
  return rows;
}

Hdf5Dataset::Hdf5Dataset(std::unique_ptr<State> state) : state_{std::move(state)} {}
Hdf5Dataset::Hdf5Dataset(Hdf5Dataset&&) noexcept = default;
Hdf5Dataset& Hdf5Dataset::operator=(Hdf5Dataset&&) noexcept = default;
Hdf5Dataset::~Hdf5Dataset() = default;

const Dimensions& Hdf5Dataset::dimensions() const noexcept { return state_->dimensions; }
std::optional<core::DType> Hdf5Dataset::dtype() const noexcept { return state_->dtype; }

std::string Hdf5Dataset::describe_elements() const {
  const TypeId type{checked(state_->place, "read the element type", [&] { return H5Dget_type(state_->id.get()); })};
  return io::describe_elements(type.get());
}

std::string Hdf5Dataset::require_written(Unwritten unwritten) const {
  return io::require_written(state_->place, state_->id.get(), unwritten);
}

void Hdf5Dataset::write_chunk(std::uint64_t chunk, std::span<const std::byte> stored) {
  core::require(chunk < state_->n_chunks(), "the chunk to write belongs to the data set");
  std::vector<hsize_t> offset(state_->dimensions.size(), 0);
  offset.front() = chunk * state_->chunk.front();
  checked(state_->place, fmt::format("write chunk {}", chunk), [&] {
    return H5Dwrite_chunk(state_->id.get(), H5P_DEFAULT, 0, offset.data(), stored.size(), stored.data());
  });
}

void Hdf5Dataset::write_all(std::span<const std::byte> data) {
  core::require(state_->dtype && data.size() == state_->n_rows() * state_->row_bytes,
                "the data have the size of the data set");
  if (data.empty()) return;
  const TypeId type = type_in_memory(*state_->dtype);
  checked(state_->place, "write the data",
          [&] { return H5Dwrite(state_->id.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data.data()); });
}

void Hdf5Dataset::State::read(std::uint64_t first, std::uint64_t n, std::size_t dimension,
                              std::span<std::byte> data) const {
  if (!dtype) fail_usage_at(place, "elements are neither integers nor floats", "one of Lockstep's types");
  if (dimensions.empty()) fail_usage_at(place, "it is a single value", "an array");
  const std::uint64_t size = dimensions.at(dimension);
  core::require(first <= size && n <= size - first, "the rows to read exist");
  const std::uint64_t bytes_of_one = size == 0 ? 0 : dimensions.front() * row_bytes / size;
  core::require(data.size() == n * (dimension == 0 ? row_bytes : bytes_of_one), "the output has the size of the rows");
  if (data.empty()) return;
  const std::string action = fmt::format("read {} [{}, {})", dimension == 0 ? "rows" : "columns", first, first + n);
  const Rows rows = select(first, n, action, dimension);
  const TypeId type = type_in_memory(*dtype);
  checked(place, action,
          [&] { return H5Dread(id.get(), type.get(), rows.memory.get(), rows.file.get(), H5P_DEFAULT, data.data()); });
}

void Hdf5Dataset::read_rows(std::uint64_t first, std::uint64_t n, std::span<std::byte> data) const {
  state_->read(first, n, 0, data);
}

void Hdf5Dataset::read_columns(std::uint64_t first, std::uint64_t n, std::span<std::byte> data) const {
  state_->read(first, n, std::max<std::size_t>(state_->dimensions.size(), 1) - 1, data);
}

void Hdf5Dataset::set_attribute(const std::string& name, std::uint64_t value) {
  write_attribute(state_->place, state_->id.get(), name, value);
}

std::optional<std::uint64_t> Hdf5Dataset::find_number_attribute(const std::string& name) const {
  return read_number_attribute(state_->place, state_->id.get(), name);
}

std::optional<std::string> Hdf5Dataset::find_text_attribute(const std::string& name) const {
  return read_text_attribute(state_->place, state_->id.get(), name);
}

bool Hdf5Dataset::has_attribute(const std::string& name) const {
  return checked(state_->place, "look for attributes", [&] { return H5Aexists(state_->id.get(), name.c_str()); }) > 0;
}

std::vector<Extent> Hdf5Dataset::extents() const {
  const State& state = *state_;
  if (state.chunk.empty()) return {find_contiguous(state.place, state.id.get())};
  if (!std::equal(state.chunk.begin() + 1, state.chunk.end(), state.dimensions.begin() + 1))
    fail_usage_at(state.place, "its chunks hold parts of rows", "chunks of whole rows");
  std::vector<Extent> extents;
  std::vector<hsize_t> offset(state.dimensions.size(), 0);
  for (std::uint64_t chunk = 0; chunk < state.n_chunks(); ++chunk) {
    offset.front() = chunk * state.chunk.front();
    extents.push_back(find_chunk(state.place, state.id.get(), chunk, offset.data()));
  }
  return extents;
}

}  // namespace lockstep::io
