#include "training/shard/set_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>

#include "core/error.hpp"
#include "io/digest.hpp"
#include "io/hdf5.hpp"

namespace lockstep::training::shard {
namespace {

constexpr std::size_t most_open_files = 8;  // of each set, because a merge may open many sets

std::optional<std::string> find_class_difference(const std::vector<std::string>& first,
                                                 const std::vector<std::string>& second,
                                                 const std::string& second_name) {
  const std::size_t n = std::min(first.size(), second.size());
  for (std::size_t i = 0; i < n; ++i) {
    if (first[i] != second[i])
      return fmt::format("class {} is '{}', but '{}' in {}", i, first[i], second[i], second_name);
  }
  if (first.size() == second.size()) return std::nullopt;
  return fmt::format("there {}, but {} in {}",
                     first.size() == 1 ? "is 1 class" : fmt::format("are {} classes", first.size()), second.size(),
                     second_name);
}

data::ExtraFile read_extra(const std::string& folder, const data::ExtraEntry& entry) {
  const std::string path = (std::filesystem::path{folder} / entry.file).string();
  const std::string digest = io::digest_of_file(path);
  if (digest != entry.digest)
    throw core::Error{core::ExitCode::failed,
                      {.what = fmt::format("'{}' is damaged: its digest is {}", path, digest),
                       .where = folder,
                       .expected = entry.digest,
                       .fix = "copy the file again from an intact copy"}};
  const io::Hdf5File file = io::Hdf5File::open(path);
  data::ExtraFile extra{.name = entry.file, .datasets = {}};
  for (const std::string& name : file.dataset_names()) {
    const io::Hdf5Dataset dataset = file.open_dataset(name);
    std::vector<std::int64_t> values(dataset.dimensions().empty() ? 0 : dataset.dimensions().front());
    if (!values.empty()) dataset.read_rows(0, values.size(), std::as_writable_bytes(std::span{values}));
    extra.datasets.emplace_back(name.starts_with('/') ? name.substr(1) : name, std::move(values));
  }
  return extra;
}

bool same_extras(const std::vector<data::ExtraEntry>& first, const std::vector<data::ExtraEntry>& second) {
  return std::equal(first.begin(), first.end(), second.begin(), second.end(),
                    [](const auto& a, const auto& b) { return a.file == b.file && a.digest == b.digest; });
}

/// Refuses two equal sets: each sample would occur twice. A manifest has the digests of all files.
void refuse_twice(const std::string& folder, std::map<std::string, std::string>& folders_by_digest) {
  const std::string manifest = (std::filesystem::path{folder} / data::manifest_name).string();
  const auto [first, is_new] = folders_by_digest.emplace(io::digest_of_file(manifest), folder);
  if (is_new) return;
  core::fail_usage({.what = fmt::format("'{}' is the same set as '{}', so each of its samples would be there twice",
                                        folder, first->second),
                    .where = "FOLDER",
                    .expected = "sets with different samples",
                    .fix = "name each set once"});
}

}  // namespace

std::optional<std::string> find_difference(const data::SetSpec& first, const data::SetSpec& second,
                                           const std::string& second_name) {
  if (first.encoding != second.encoding)
    return fmt::format("samples are kept as '{}', but as '{}' in {}", first.encoding, second.encoding, second_name);
  if (first.x != second.x)
    return fmt::format("x is {}, but {} in {}", describe(first.x), describe(second.x), second_name);
  if (first.y != second.y)
    return fmt::format("y is {}, but {} in {}", describe(first.y), describe(second.y), second_name);
  return find_class_difference(first.classes, second.classes, second_name);
}

SetSource::SetSource(const std::vector<std::string>& folders) {
  const data::Manifest first = data::read_manifest(folders.front());
  spec_ = first.spec;
  filter_ = first.filter;
  std::map<std::string, std::string> folders_by_digest;
  for (const std::string& folder : folders) {
    const data::Manifest manifest = data::read_manifest(folder);
    refuse_twice(folder, folders_by_digest);
    if (const auto difference = find_difference(spec_, manifest.spec, folder))
      core::fail_usage({.what = "the sets do not fit together: " + *difference,
                        .where = folders.front(),
                        .expected = "the same types, shapes and classes",
                        .fix = "import them again in the same way"});
    if (!same_extras(first.extras, manifest.extras))
      core::fail_usage({.what = fmt::format("the extra files of {} and {} differ", folders.front(), folder),
                        .where = "extra files, such as the mapping of ids",
                        .expected = "the same in all sets: otherwise a number means different things",
                        .fix = "import the inputs together"});
    add(folder, manifest);
    for (const std::string& note : manifest.notes)
      if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(note);
  }
  for (const data::ExtraEntry& entry : first.extras) extras_.push_back(read_extra(folders.front(), entry));
  keep_decoded();
}

// Reading a single sample means decoding its whole chunk, unless that is still kept.
void SetSource::keep_decoded() {
  std::size_t n_parts = 0;
  for (const Joined& joined : splits_) n_parts += joined.parts.size();
  for (Joined& joined : splits_)
    for (Part& part : joined.parts) {
      if (part.set->manifest().filter == io::Filter::none) continue;
      const std::uint64_t n_blocks = most_decoded.value / n_parts / data::block_bytes(*part.set);
      part.decoded = data::make_streaming_store(part.set, {.by_block = true, .n_blocks = n_blocks});
    }
}

void SetSource::add(const std::string& folder, const data::Manifest& manifest) {
  for (const data::Split& split : manifest.splits) {
    Joined& joined = find_or_add(split.name);
    joined.parts.push_back(
        {joined.n_samples, std::make_shared<const data::ShardSet>(folder, split.name, most_open_files), nullptr});
    joined.n_samples += split.n_samples;
  }
}

SetSource::Joined& SetSource::find_or_add(const std::string& name) {
  for (Joined& joined : splits_) {
    if (joined.name == name) return joined;
  }
  return splits_.emplace_back(Joined{.name = name});
}

void SetSource::join_splits() {
  Joined all{.name = "train"};
  for (Joined& joined : splits_) {
    for (Part& part : joined.parts) {
      part.first += all.n_samples;
      all.parts.push_back(std::move(part));
    }
    all.n_samples += joined.n_samples;
  }
  splits_.clear();
  splits_.push_back(std::move(all));
}

std::vector<data::SourceSplit> SetSource::splits() const {
  std::vector<data::SourceSplit> splits;
  for (const Joined& joined : splits_) splits.push_back({joined.name, joined.n_samples});
  return splits;
}

// The last part that begins at or before `sample` and is not empty.
const SetSource::Part& SetSource::part_of(const Joined& joined, std::uint64_t sample) {
  const auto after = std::upper_bound(joined.parts.begin(), joined.parts.end(), sample,
                                      [](std::uint64_t s, const Part& part) { return s < part.first; });
  return *std::prev(after);
}

void SetSource::read(std::size_t split, std::uint64_t first, std::uint64_t n, std::span<std::byte> x,
                     std::span<std::byte> y) {
  while (n > 0) {
    const Part& part = part_of(splits_.at(split), first);
    const std::uint64_t local = first - part.first;
    const std::uint64_t here = std::min(n, part.set->n_samples() - local);
    const auto x_here = x.first(here * spec_.x.bytes());
    const auto y_here = y.first(here * spec_.y.bytes());
    if (part.decoded && here < part.set->manifest().chunk_samples)
      read_decoded(*part.decoded, local, here, x_here, y_here);
    else
      part.set->read(local, here, x_here, y_here);
    x = x.subspan(x_here.size());
    y = y.subspan(y_here.size());
    first += here;
    n -= here;
  }
}

void SetSource::read_decoded(data::Store& store, std::uint64_t first, std::uint64_t n, std::span<std::byte> x,
                             std::span<std::byte> y) {
  ids_.resize(n);
  std::iota(ids_.begin(), ids_.end(), first);
  store.fetch({.ids = ids_}, fetched_);
  for (std::size_t i = 0; i < n; ++i) {
    std::ranges::copy(fetched_.samples[i].x, x.begin() + static_cast<std::ptrdiff_t>(i * spec_.x.bytes()));
    std::ranges::copy(fetched_.samples[i].y, y.begin() + static_cast<std::ptrdiff_t>(i * spec_.y.bytes()));
  }
  fetched_.owners.clear();
}

std::vector<std::byte> SetSource::read_encoded(std::size_t split, std::uint64_t index, std::span<std::byte> y) {
  const Part& part = part_of(splits_.at(split), index);
  if (!part.decoded) return part.set->read_encoded(index - part.first, y);
  const std::uint64_t id = index - part.first;
  part.decoded->fetch({.ids = std::span{&id, 1}}, fetched_);
  std::ranges::copy(fetched_.samples.front().y, y.begin());
  const std::span x = fetched_.samples.front().x;
  return {x.begin(), x.end()};
}

}  // namespace lockstep::training::shard
