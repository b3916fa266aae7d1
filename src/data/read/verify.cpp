#include "data/read/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "data/format/manifest.hpp"
#include "data/format/values.hpp"
#include "data/read/shard_reader.hpp"
#include "io/digest.hpp"
#include "io/file.hpp"
#include "runtime/together.hpp"

namespace lockstep::data {
namespace {

constexpr std::uint64_t digested_together = std::uint64_t{1} << 20;

/// Compares the check sums of a shard with its bytes, which pass from front to back.
class PassingSums {
 public:
  explicit PassingSums(const ShardIndex& index) {
    for (const ArrayIndex& array : index.arrays)
      for (std::size_t i = 0; i < array.chunks.size(); ++i) add(array, i);
    std::ranges::sort(sums_, {}, &Sum::address);
  }

  void pass(std::span<const std::byte> piece) {
    while (next_ < sums_.size() && !piece.empty()) {
      const Sum& sum = sums_[next_];
      const std::uint64_t from = sum.address + n_summed_;
      if (from < at_) return void(overlap_ = true);
      advance(piece, std::min<std::uint64_t>(piece.size(), from - at_));
      const auto here = piece.first(std::min<std::uint64_t>(piece.size(), sum.bytes - n_summed_));
      crc_ = core::crc32c(here, crc_);
      n_summed_ += here.size();
      advance(piece, here.size());
      if (n_summed_ < sum.bytes) continue;
      are_right_ = are_right_ && crc_ == sum.crc;
      ++next_;
      n_summed_ = crc_ = 0;
    }
    at_ += piece.size();
  }

  /// Whether all are those of the bytes.
  [[nodiscard]] bool are_right() const noexcept { return are_right_ && next_ == sums_.size(); }
  /// Whether bytes belong to two.
  [[nodiscard]] bool overlap() const noexcept { return overlap_; }

 private:
  struct Sum {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;
  };

  void add(const ArrayIndex& array, std::size_t chunk) {
    const io::Extent& extent = array.chunks[chunk];
    const std::uint64_t step = array.filter == io::Filter::none ? crc_block_bytes : extent.bytes;
    for (std::uint64_t at = 0; at < extent.bytes; at += step)
      sums_.push_back({extent.address + at, std::min(step, extent.bytes - at), array.crcs[chunk][at / step]});
  }

  void advance(std::span<const std::byte>& piece, std::uint64_t n) {
    piece = piece.subspan(n);
    at_ += n;
  }

  std::vector<Sum> sums_{};
  std::size_t next_ = 0;
  std::uint64_t at_ = 0;        ///< of the file
  std::uint64_t n_summed_ = 0;  ///< of the next one
  std::uint32_t crc_ = 0;       ///< of these
  bool are_right_ = true, overlap_ = false;
};

/// Examines the files of one rank, one after the other.
class Examiner {
 public:
  /// `progress` gets the bytes of each piece read.
  Examiner(const std::string& folder, const Manifest& manifest, std::function<void(std::uint64_t)> progress)
      : folder_{folder}, manifest_{manifest}, progress_{std::move(progress)} {}

  /// Returns the defects of the file, one line each.
  std::vector<std::string> examine(const ManifestFile& item) {
    found_.clear();
    is_unread_ = false;
    const std::string path = fmt::format("{}/{}", folder_, item.file);
    try {
      using Type = std::filesystem::file_type;
      std::error_code error;  // reported by open()
      const Type type = std::filesystem::status(path, error).type();
      if (type == Type::not_found) return {"missing"};
      if (type != Type::regular && type != Type::none) return {"a folder, a pipe or a device, not a file"};
      const io::File file = open(path);
      if (const auto complaint = examine_size(file, item.bytes)) return {*complaint};
      std::optional<PassingSums> sums = item.shard != nullptr ? find_sums(*item.shard) : std::nullopt;
      const std::string digest = digest_of(file, sums);
      if (digest != item.digest) explain(item, digest);
      if (digest == item.digest && item.shard != nullptr) examine_meaning(item, sums);
    } catch (const core::Error& error) {
      if (is_unread_) return {};
      found_.push_back(error.problem().what);
    }
    return std::move(found_);
  }

  /// The first error of a file that cannot be opened, which says nothing about the set.
  [[nodiscard]] const std::optional<core::Error>& unreadable() const noexcept { return unreadable_; }

 private:
  io::File open(const std::string& path) {
    try {
      return io::File{path};
    } catch (const core::Error& error) {
      leave_unread(error);
      throw;
    }
  }

  ShardReader open(const ShardEntry& shard) {
    try {
      return ShardReader{folder_, shard, manifest_.spec, counters_};
    } catch (const core::Error& error) {
      if (error.code() == core::ExitCode::system) leave_unread(error);
      throw;
    }
  }

  void leave_unread(const core::Error& error) {
    is_unread_ = true;
    if (!unreadable_) unreadable_ = error;
  }

  /// Nothing if its index cannot be read, which the digest tells or what follows it.
  std::optional<PassingSums> find_sums(const ShardEntry& shard) {
    std::optional<PassingSums> sums;
    static_cast<void>(core::complaint_of([&] {
      sums.emplace(ShardReader{folder_, shard, manifest_.spec, counters_}.index());
    }));
    return sums;
  }

  std::string digest_of(const io::File& file, std::optional<PassingSums>& sums) {
    io::Digest digest;
    std::vector<std::byte> piece;
    const std::uint64_t bytes = file.size().value;
    for (std::uint64_t at = 0; at < bytes; at += piece.size()) {
      piece.resize(std::min(digested_together, bytes - at));
      file.read_at(at, piece);
      digest.update(piece);
      if (sums) sums->pass(piece);
      progress_(piece.size());
    }
    return digest.hex();
  }

  // Something in the file has changed: reports it as precisely as its check sums allow.
  void explain(const ManifestFile& item, const std::string& digest) {
    try {
      if (item.shard != nullptr) examine_chunks(open(*item.shard));
    } catch (const core::Error&) {
      if (!is_unread_) throw;  // the change is already known
    }
    if (found_.empty())
      found_.push_back(
          fmt::format("{}digest expected {}, found {}",
                      item.shard != nullptr ? "changed outside the samples, in the structures of HDF5: " : "",
                      item.digest, digest));
  }

  // Compares the index of an undamaged file with the manifest.
  void examine_meaning(const ManifestFile& item, const std::optional<PassingSums>& sums) {
    const ShardReader reader = open(*item.shard);
    const ShardIndex& index = reader.index();
    if (index.first_id != item.first_id)
      found_.push_back(fmt::format("begins with id {}, expected {}", index.first_id, item.first_id));
    const std::uint64_t chunk_rows = std::min(manifest_.chunk_samples, index.n_samples);
    for (const ArrayIndex& array : index.arrays) {
      if (array.filter != manifest_.filter)
        found_.push_back(fmt::format("{} has the filter {}, expected {}", array.name, io::name(array.filter),
                                     io::name(manifest_.filter)));
      if (!manifest_.spec.is_encoded() && array.chunk_rows != chunk_rows)
        found_.push_back(
            fmt::format("{} has chunks of {} samples, expected {}", array.name, array.chunk_rows, chunk_rows));
    }
    if (!sums || !sums->are_right()) examine_chunks(reader);
    if (sums && sums->overlap()) found_.emplace_back("two chunks of its index overlap");
    if (found_.empty()) examine_labels(reader);
  }

  void examine_chunks(const ShardReader& reader) {
    for (const ArrayIndex& array : reader.index().arrays)
      for (std::uint64_t chunk = 0; chunk < array.chunks.size(); ++chunk)
        if (const auto complaint = reader.examine_chunk(array, chunk)) found_.push_back(*complaint);
  }

  void examine_labels(const ShardReader& reader) {
    const ArrayIndex& y = *reader.index().find(y_name);
    std::vector<std::byte> labels;
    for (std::uint64_t chunk = 0; chunk < y.chunks.size() && !manifest_.spec.classes.empty(); ++chunk) {
      labels.resize(y.rows_in(chunk) * y.row_bytes);
      reader.read_chunk(y, chunk, labels);
      const auto bad = find_bad_label(manifest_.spec, labels);
      if (!bad) continue;
      const std::uint64_t sample = reader.index().first_id + chunk * y.chunk_rows + bad->sample;
      found_.push_back(fmt::format("y, chunk {}: sample {} has label {}, expected {}", chunk, sample, bad->value,
                                   expected_labels(manifest_.spec)));
    }
  }

  const std::string& folder_;
  const Manifest& manifest_;
  std::function<void(std::uint64_t)> progress_;
  std::optional<core::Error> unreadable_;
  bool is_unread_ = false;  ///< about the current file
  ReadCounters counters_;
  std::vector<std::string> found_;
};

std::vector<Damage> find_surplus(const std::string& folder, const std::vector<ManifestFile>& items) {
  std::set<std::string> known, surplus;
  for (const ManifestFile& item : items) known.insert(item.file);
  for (const auto& file : std::filesystem::directory_iterator{folder})
    if (file.path().extension() == ".h5" && !known.contains(file.path().filename().string()))
      surplus.insert(file.path().filename().string());
  std::vector<Damage> damages;
  for (const std::string& file : surplus) damages.push_back({file, "surplus: the manifest does not list it"});
  return damages;
}

// Collective: returns nothing if the manifest itself is damaged; then `result` says so on rank 0.
std::optional<Manifest> read_manifest_of(const std::string& folder, const runtime::Communicator& world,
                                         VerifyResult& result) {
  try {
    return read_manifest(folder, world);
  } catch (const core::Error& error) {  // the same on all ranks
    if (error.code() != core::ExitCode::failed) throw;
    if (world.rank() == 0) result = {.damages = {{std::string{manifest_name}, error.problem().what}}, .n_files = 1};
    return std::nullopt;
  }
}

/// The progress of all ranks, which each rank estimates from its own.
class Progress {
 public:
  using Function = std::function<bool(std::uint64_t, std::uint64_t)>;
  Progress(const Function& function, std::uint64_t mine, std::uint64_t all)
      : function_{function}, mine_{mine}, all_{all} {}

  void advance(std::uint64_t bytes) {
    done_ += bytes;
    const double share = static_cast<double>(done_) / static_cast<double>(std::max(mine_, done_));
    if (function_ && !is_stopped_)
      is_stopped_ = !function_(static_cast<std::uint64_t>(share * static_cast<double>(all_)), all_);
  }
  [[nodiscard]] bool is_stopped() const noexcept { return is_stopped_; }

 private:
  const Function& function_;
  std::uint64_t mine_;
  std::uint64_t all_;
  std::uint64_t done_ = 0;
  bool is_stopped_ = false;
};

/// The bytes of every n-th item, beginning with `first`.
std::uint64_t bytes_of(const std::vector<ManifestFile>& items, std::size_t first = 0, std::size_t n = 1) {
  std::uint64_t bytes = 0;
  for (std::size_t i = first; i < items.size(); i += n) bytes += items[i].bytes;
  return bytes;
}

// Collective: gathers the lines of all ranks on rank 0, in the order of `items`.
std::vector<Damage> gather_damages(const runtime::Communicator& world, const std::vector<ManifestFile>& items,
                                   const std::vector<std::pair<std::size_t, std::string>>& mine) {
  std::string text;
  for (const auto& [item, line] : mine) text += fmt::format("{} {}{}", item, line, '\0');
  std::vector<std::pair<std::size_t, std::string>> all;
  for (const std::string& part : world.gather(text)) {
    for (std::size_t at = 0; at < part.size();) {
      const std::string entry = part.c_str() + at;
      at += entry.size() + 1;
      all.emplace_back(std::stoull(entry), entry.substr(entry.find(' ') + 1));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Damage> damages;
  for (auto& [item, line] : all) damages.push_back({items[item].file, std::move(line)});
  return damages;
}

}  // namespace

VerifyResult verify(const std::string& folder, const runtime::Communicator& world,
                    const std::function<bool(std::uint64_t, std::uint64_t)>& progress) {
  VerifyResult result;
  const auto manifest = read_manifest_of(folder, world, result);
  if (!manifest) return result;
  const std::vector<ManifestFile> items = manifest->files();
  const auto rank = static_cast<std::size_t>(world.rank()), n_ranks = static_cast<std::size_t>(world.n_ranks());
  Progress mine{progress, bytes_of(items, rank, n_ranks), bytes_of(items)};
  Examiner examiner{folder, *manifest, [&](std::uint64_t bytes) { mine.advance(bytes); }};
  std::vector<std::pair<std::size_t, std::string>> lines;
  // Each round, every rank examines one file, and then all decide whether to continue.
  for (std::size_t first = 0; first < items.size() && !result.is_stopped; first += n_ranks) {
    if (const std::size_t item = first + rank; item < items.size())
      for (std::string& line : examiner.examine(items[item])) lines.emplace_back(item, std::move(line));
    result.is_stopped = world.any(mine.is_stopped());
  }
  result.damages = gather_damages(world, items, lines);
  runtime::together(world, [&] {
    if (rank != 0) return;
    for (Damage& damage : find_surplus(folder, items)) result.damages.push_back(std::move(damage));
  });
  result.unreadable = examiner.unreadable();
  if (rank != 0) return result;
  result.n_files = items.size() + 1;
  for (const Split& split : manifest->splits) result.n_samples += split.n_samples;
  result.bytes = bytes_of(items);
  return result;
}

}  // namespace lockstep::data
