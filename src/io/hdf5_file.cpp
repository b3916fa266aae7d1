#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/log.hpp"
#include "core/suggest.hpp"
#include "io/file.hpp"
#include "io/hdf5.hpp"
#include "io/hdf5_attributes.hpp"
#include "io/hdf5_dataset_state.hpp"
#include "io/hdf5_origin.hpp"
#include "io/hdf5_types.hpp"
#include "io/hdf5_written.hpp"

namespace lockstep::io {

struct Hdf5File::State {
  Place place;
  FileId id;
  Reach reach{};
  core::Descriptor lock{};  ///< of a foreign file

  [[nodiscard]] Place at(const std::string& dataset) const { return {place.code, place.path, dataset, place.new_file}; }
};

namespace {

ListId make_list(const Place& place, hid_t kind) {
  return ListId{checked(place, "make a property list", [&] { return H5Pcreate(kind); })};
}

/// `set` sets options of a property list; they fail only if the library lacks them.
template <class Set>
void set_options(const Place& place, Set&& set) {
  checked(place, "set its options", set);
}

/// Opens files with the library's settings for external links, because a link may lead to its own file.
ListId make_access_list(const Place& place) {
  ListId list = make_list(place, H5P_FILE_ACCESS);
  set_options(place, [&] { return H5Pset_fclose_degree(list.get(), H5F_CLOSE_WEAK); });
  set_options(place, [&] { return turn_off_locks(list.get()); });
  return list;
}

ListId make_new_access_list(const Place& place) {
  constexpr hsize_t aligned_from = 16384;  // smaller pieces would waste too much
  ListId list = make_access_list(place);
  // Closing the file closes what is open in it, so that its last bytes are written.
  set_options(place, [&] { return H5Pset_fclose_degree(list.get(), H5F_CLOSE_STRONG); });
  set_options(place, [&] { return H5Pset_libver_bounds(list.get(), H5F_LIBVER_V110, H5F_LIBVER_V110); });
  set_options(place, [&] { return H5Pset_alignment(list.get(), aligned_from, 4096); });
  return list;
}

/// Chunks that a read of some rows uses stay in memory until all of their rows were read. Linked files are opened in
/// the same way.
ListId make_read_list(const Place& place, Reach& reach) {
  constexpr std::size_t n_slots = 12421;  // a prime, as the library wants it
  constexpr std::size_t cache_bytes = std::size_t{64} << 20;
  ListId list = make_list(place, H5P_DATASET_ACCESS);
  set_options(place, [&] { return H5Pset_chunk_cache(list.get(), n_slots, cache_bytes, 1.0); });
  const ListId access = make_access_list(place);
  set_options(place, [&] { return H5Pset_elink_fapl(list.get(), access.get()); });
  limit_links(place, list.get(), reach);
  return list;
}

void set_filter(const Place& place, hid_t list, Filter filter) {
  constexpr unsigned deflate_level = 6;  // for other programs that would write to the data set
  if (filter == Filter::none) return;
  if (filter == Filter::deflate) {
    set_options(place, [&] { return H5Pset_deflate(list, deflate_level); });
    return;
  }
  const int id = filter == Filter::zstd ? zstd_id : lz4_id;
  set_options(place, [&] { return H5Pset_shuffle(list); });
  set_options(place, [&] { return H5Pset_filter(list, id, H5Z_FLAG_MANDATORY, 0, nullptr); });
}

ListId make_dataset_list(const Place& place, const Dimensions& dimensions, std::uint64_t chunk_rows, Filter filter) {
  ListId list = make_list(place, H5P_DATASET_CREATE);
  set_options(place, [&] { return H5Pset_obj_track_times(list.get(), false); });
  set_options(place, [&] { return H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER); });
  if (chunk_rows == 0) return list;
  std::vector<hsize_t> chunk(dimensions.begin(), dimensions.end());
  chunk.front() = chunk_rows;
  set_options(place, [&] { return H5Pset_chunk(list.get(), static_cast<int>(chunk.size()), chunk.data()); });
  set_filter(place, list.get(), filter);
  return list;
}

/// A chunk may have more rows than the data set; the data set may then grow to that many.
SpaceId make_space(const Place& place, const Dimensions& dimensions, std::uint64_t chunk_rows) {
  const std::vector<hsize_t> sizes(dimensions.begin(), dimensions.end());
  std::vector<hsize_t> most = sizes;
  most.front() = std::max<hsize_t>(most.front(), chunk_rows);
  return SpaceId{checked(place, "make the shape",
                         [&] { return H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), most.data()); })};
}

/// Adds the groups in its name. They store no times: files with the same content are equal to the byte.
void add_groups(const Place& place, hid_t file) {
  const ListId list = make_list(place, H5P_GROUP_CREATE);
  set_options(place, [&] { return H5Pset_obj_track_times(list.get(), false); });
  for (std::size_t end = place.dataset.find('/', 1); end != std::string::npos; end = place.dataset.find('/', end + 1)) {
    const std::string name = place.dataset.substr(0, end);
    if (H5Lexists(file, name.c_str(), H5P_DEFAULT) > 0) continue;
    const GroupId group{checked(place, "create a group",
                                [&] { return H5Gcreate2(file, name.c_str(), H5P_DEFAULT, list.get(), H5P_DEFAULT); })};
  }
}

/// At `place`, in `file`.
DatasetId add_dataset(const Place& place, hid_t file, core::DType dtype, const SpaceId& space, const ListId& list) {
  const TypeId type = type_in_file(dtype);
  add_groups(place, file);
  DatasetId id{checked(place, "create the data set", [&] {
    return H5Dcreate2(file, place.dataset.c_str(), type.get(), space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT);
  })};
  if (dtype == core::DType::bfloat16) write_attribute(place, id.get(), dtype_attribute, std::string{"bfloat16"});
  return id;
}

template <class Open>
bool can_open(Open&& open) {
  const Silence silence;
  return static_cast<bool>(DatasetId{open()});
}

/// Lists the existing data sets, if that of `place` is not among them.
void refuse_unknown(const Place& place, const std::vector<std::string>& names) {
  const std::string name = place.dataset.starts_with('/') ? place.dataset : "/" + place.dataset;
  if (std::ranges::binary_search(names, name)) return;
  const std::optional<std::string> near = core::near_miss(name, names);
  core::fail_usage({.what = fmt::format("'{}' has no data set {}", place.path, place.dataset),
                    .expected = names.empty() ? "a file with data sets" : "one of " + core::join(names),
                    .fix = near ? fmt::format("did you mean '{}'?", *near) : ""});
}

/// H5Ovisit's callback: no exception may pass through the library.
herr_t take_name(const char* name, void* names) {
  try {
    static_cast<std::vector<std::string>*>(names)->push_back(fmt::format("/{}", name));
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
}

}  // namespace

Hdf5File::Hdf5File(std::unique_ptr<State> state) : state_{std::move(state)} {}
Hdf5File::Hdf5File(Hdf5File&&) noexcept = default;
Hdf5File& Hdf5File::operator=(Hdf5File&&) noexcept = default;

Hdf5File::~Hdf5File() {
  if (!state_ || !state_->id || is_given_up(state_->id.get())) return;
  try {
    close();
  } catch (const std::exception& error) {
    core::log_error(error.what());
  }
}

Hdf5File Hdf5File::create(const std::string& path) {
  prepare_hdf5();
  Place place{.code = core::ExitCode::system, .path = path};
  const ListId creation = make_list(place, H5P_FILE_CREATE);
  set_options(place, [&] { return H5Pset_obj_track_times(creation.get(), false); });
  const ListId access = make_new_access_list(place);
  FileId id{checked(place, "create the file",
                    [&] { return H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()); })};
  place.new_file = id.get();
  return Hdf5File{std::make_unique<State>(State{place, std::move(id)})};
}

Hdf5File Hdf5File::open(const std::string& path, OtherFiles others) {
  const File is_there{path};
  prepare_hdf5();
  const Place place{.code = core::ExitCode::usage, .path = path};
  const ListId access = make_access_list(place);
  FileId id{checked(place, "open the file", [&] { return H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()); })};
  return Hdf5File{std::make_unique<State>(State{place, std::move(id), Reach{others == OtherFiles::followed}})};
}

Hdf5File Hdf5File::open_foreign(const std::string& path, OtherFiles others) {
  core::Descriptor lock = lock_for_reading({.code = core::ExitCode::usage, .path = path});
  Hdf5File file = open(path, others);
  file.state_->lock = std::move(lock);
  return file;
}

// On systems that have it, this name of a descriptor leads to the open file itself.
Hdf5File Hdf5File::open(const File& file) {
  prepare_hdf5();
  const std::string by_descriptor = fmt::format("/proc/self/fd/{}", file.descriptor());
  const std::string& name = ::access(by_descriptor.c_str(), R_OK) == 0 ? by_descriptor : file.path();
  const Place place{.code = core::ExitCode::usage, .path = file.path()};
  const ListId access = make_access_list(place);
  FileId id{checked(place, "open the file", [&] { return H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.get()); })};
  return Hdf5File{std::make_unique<State>(State{place, std::move(id), Reach{}})};
}

Hdf5Dataset Hdf5File::create_dataset(const std::string& name, core::DType dtype, const Dimensions& dimensions,
                                     std::uint64_t chunk_rows, Filter filter) {
  const Place place = state_->at(name);
  core::require(!dimensions.empty(), "a data set has a dimension");
  core::require(chunk_rows > 0 || filter == Filter::none, "contiguous data have no filter");
  const ListId list = make_dataset_list(place, dimensions, chunk_rows, filter);
  const SpaceId space = make_space(place, dimensions, chunk_rows);
  return Hdf5Dataset{Hdf5Dataset::State::describe(place, add_dataset(place, state_->id.get(), dtype, space, list))};
}

Hdf5Dataset Hdf5File::lay_out_dataset(const std::string& name, core::DType dtype, const Dimensions& dimensions) {
  const Place place = state_->at(name);
  const ListId list = make_dataset_list(place, dimensions, 0, Filter::none);
  set_options(place, [&] { return H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_EARLY); });
  const SpaceId space = make_space(place, dimensions, 0);
  return Hdf5Dataset{Hdf5Dataset::State::describe(place, add_dataset(place, state_->id.get(), dtype, space, list))};
}

Hdf5Dataset Hdf5File::open_dataset(const std::string& name) const {
  const Place place = state_->at(name);
  const ListId list = make_read_list(place, state_->reach);
  const auto open = [&] { return H5Dopen2(state_->id.get(), name.c_str(), list.get()); };
  if (!can_open(open)) {
    refuse_far_link(place, state_->reach);
    refuse_dead_links(place, state_->id.get(), name, list.get());
    refuse_unknown(place, dataset_names());
  }
  DatasetId id{checked(place, "open the data set", open)};
  require_origin(place, state_->id.get(), id.get(), list.get(), state_->reach);
  return Hdf5Dataset{Hdf5Dataset::State::describe(place, std::move(id))};
}

bool Hdf5File::has_dataset(const std::string& name) const {
  const Place place = state_->at(name);
  const ListId list = make_read_list(place, state_->reach);
  if (can_open([&] { return H5Dopen2(state_->id.get(), name.c_str(), list.get()); })) return true;
  refuse_far_link(place, state_->reach);
  refuse_dead_links(place, state_->id.get(), name, list.get());
  return false;
}

std::vector<std::string> Hdf5File::dataset_names() const {
  std::vector<std::string> names;
  const ListId list = make_read_list(state_->place, state_->reach);
  checked(state_->place, "list the data sets",
          [&] { return visit_datasets(state_->id.get(), list.get(), take_name, &names); });
  state_->reach.refused.clear();
  std::ranges::sort(names);
  return names;
}

void Hdf5File::set_attribute(const std::string& name, const std::string& value) {
  write_attribute(state_->place, state_->id.get(), name, value);
}

void Hdf5File::set_attribute(const std::string& name, std::uint64_t value) {
  write_attribute(state_->place, state_->id.get(), name, value);
}

std::string Hdf5File::text_attribute(const std::string& name) const {
  const auto text = find_text_attribute(name);
  if (!text) {
    core::fail_usage({.what = fmt::format("there is no text attribute '{}'", name), .where = describe(state_->place)});
  }
  return *text;
}

std::optional<std::string> Hdf5File::find_text_attribute(const std::string& name) const {
  return read_text_attribute(state_->place, state_->id.get(), name);
}

std::optional<std::uint64_t> Hdf5File::find_number_attribute(const std::string& name) const {
  return read_number_attribute(state_->place, state_->id.get(), name);
}

void Hdf5File::close() {
  const FileId id = std::move(state_->id);
  core::require(static_cast<bool>(id), "a file is closed once");
  if (is_given_up(id.get()))
    core::fail_system(fmt::format("'{}' is lost: it could not be written", state_->place.path));
  checked(state_->place, "write the file", [&] { return H5Fflush(id.get(), H5F_SCOPE_LOCAL); });
  checked(state_->place, "close the file", [&] { return H5Fclose(id.get()); });
}

}  // namespace lockstep::io
