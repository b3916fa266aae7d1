#include "checkpoint/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include "checkpoint/folder.hpp"
#include "checkpoint/index.hpp"
#include "core/error.hpp"
#include "core/pending.hpp"
#include "core/temporary.hpp"
#include "io/digest.hpp"
#include "io/hdf5.hpp"
#include "runtime/together.hpp"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

/// As the tensor has it where rows are of its first dimension.
io::Dimensions dimensions_of(const Box& box) {
  if (box.n_outer != 1 || box.n_rows != box.shape.front()) return {box.n_outer, box.rows.count, box.n_inner};
  io::Dimensions dimensions = box.shape;
  dimensions.front() = box.rows.count;
  return dimensions;
}

FileRecord write_file(const std::string& folder, int rank, std::span<const Box> boxes, const FillBox& fill) {
  FileRecord record{.name = file_name_of(rank)};
  const std::string path = (fs::path{folder} / record.name).string();
  std::size_t most = 0;
  for (const Box& box : boxes) most = std::max(most, box.n_elements());
  std::vector<float> buffer(most);
  io::Hdf5File file = io::Hdf5File::create(path);
  file.set_attribute("lockstep_format", "checkpoint");
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const Box& box = boxes[i];
    const std::span<float> values = std::span{buffer}.first(box.n_elements());
    fill(i, values);
    io::Hdf5Dataset dataset =
        file.create_dataset("/" + box.tensor, core::DType::float32, dimensions_of(box), 0, io::Filter::none);
    dataset.write_all(std::as_bytes(values));
    dataset.set_attribute("first_row", box.rows.offset);
    record.pieces.push_back({box, io::digest_of(std::as_bytes(values))});
  }
  file.close();
  record.bytes = fs::file_size(path);
  record.digest = io::digest_of_file(path);
  core::sync_to_disk(path);
  return record;
}

/// Names of the files of the checkpoint that is there, if there is one.
std::set<std::string> names_in(const std::string& path) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry{path, error}, end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name == index_name || name == done_name || (name.starts_with("rank-") && name.ends_with(".h5")))
      names.insert(name);
  }
  return names;
}

}  // namespace

void write_checkpoint(const runtime::Communicator& world, const std::string& path, const std::string& content,
                      std::span<const Box> mine, const FillBox& fill) {
  const bool is_first = world.rank() == 0;
  std::optional<core::PendingFolder> pending;
  runtime::together(world, [&] {
    if (!is_first) return;
    const fs::path folder = fs::path{path}.parent_path();
    if (fs::create_directories(folder)) core::sync_to_disk(fs::absolute(folder).parent_path().string());
    core::remove_leftovers(folder.string(), "");
    pending.emplace(path, names_in(path), "");
  });
  const std::string folder = world.broadcast(is_first ? fs::absolute(pending->path()).string() : "");
  std::string record;
  runtime::together(world, [&] {
    if (!mine.empty()) record = to_text(write_file(folder, world.rank(), mine, fill));
  });
  const std::vector<std::string> records = world.gather(record);
  runtime::together(world, [&] {
    if (!is_first) return;
    Index index{.content = content};
    for (const std::string& text : records)
      if (!text.empty()) index.files.push_back(parse_file_record(text));
    const std::string text = to_text(index);
    const std::string digest = io::digest_of(std::as_bytes(std::span{text})) + "\n";
    core::write_whole((fs::path{folder} / index_name).string(), std::as_bytes(std::span{text}));
    core::write_whole((fs::path{folder} / done_name).string(), std::as_bytes(std::span{digest}));
    pending->commit();
  });
}

}  // namespace lockstep::checkpoint
