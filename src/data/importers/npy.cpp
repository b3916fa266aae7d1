// NumPy's files: an .npz archive with arrays x and y (or arr_0 and arr_1, NumPy's names for arrays without one), or a
// folder with x.npy and y.npy, or two files with one array each (KMNIST's); see pair_names.hpp for names of splits.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/error.hpp"
#include "core/shortage.hpp"
#include "core/suggest.hpp"
#include "data/importers/importers.hpp"
#include "data/importers/npy_header.hpp"
#include "data/importers/pair_names.hpp"
#include "data/importers/words.hpp"
#include "data/importers/zip_archive.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view array_ending = ".npy";
constexpr std::string_view archive_ending = ".npz";

bool is_archive(const std::string& file) { return file.ends_with(archive_ending); }

/// UTF-8, or invalid UTF-8 if the number is not a character.
void append_character(std::string& text, std::uint32_t code) {
  const auto append = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return append(code);
  if (code >= 0x800) {
    if (code >= 0x10000) append(std::min<std::uint32_t>(0xf0 | code >> 18, 0xff));
    append(code >= 0x10000 ? 0x80 | (code >> 12 & 0x3f) : 0xe0 | code >> 12);
    append(0x80 | (code >> 6 & 0x3f));
  } else {
    append(0xc0 | code >> 6);
  }
  append(0x80 | (code & 0x3f));
}

std::string decode_word(std::span<const std::byte> stored, bool is_wide) {
  std::string word{reinterpret_cast<const char*>(stored.data()), stored.size()};
  word.resize(word.find_last_not_of('\0') + 1);
  if (!is_wide) return word;
  std::string text;
  for (std::size_t at = 0; at < word.size(); at += sizeof(std::uint32_t)) {
    std::uint32_t code = 0;
    std::memcpy(&code, &stored[at], sizeof code);
    append_character(text, code);
  }
  return text;
}

/// What the header says, against what the archive says of a member.
void check_size(const NpyHeader& header, const ZipArchive& archive, const std::string& member,
                const std::string& place) {
  std::uint64_t bytes = header.word_bytes > 0 ? header.word_bytes : core::size_of(header.dtype);
  bool is_too_large = false;
  for (const std::uint64_t dimension : header.shape)
    is_too_large = __builtin_mul_overflow(bytes, dimension, &bytes) || is_too_large;
  is_too_large = __builtin_add_overflow(bytes, header.bytes, &bytes) || is_too_large;
  const std::uint64_t found = archive.member_bytes(member);
  if (found == bytes && !is_too_large) return;
  core::fail_usage({.what = fmt::format("{} bytes", found),
                    .where = place,
                    .expected = is_too_large ? "an array smaller than 2^64 bytes"
                                             : fmt::format("{} bytes, as the array's header says", bytes),
                    .fix = "write it again with numpy.savez"});
}

/// Arrays of files and archives; those that may be labels may have words.
class Arrays {
 public:
  explicit Arrays(const ImportOptions& options) : options_{options} {}

  /// Opens an .npy file, or the only member of an .npz archive.
  [[nodiscard]] std::unique_ptr<RowArray> open_file(const std::string& path, bool is_label) const {
    if (!is_archive(path)) return make(Input{path, options_.spools}, is_label);
    const ZipArchive archive{path};
    const std::vector<std::string> members = archive.member_names();
    if (members.size() != 1)
      core::fail_usage({.what = fmt::format("{} arrays: {}", members.size(), core::join(members)),
                        .where = path,
                        .expected = "one array, as the labels are in a separate file",
                        .fix = "give the archive alone if it has inputs and labels"});
    return open_member(archive, members.front(), is_label);
  }

  /// What the header says is compared before the whole is unpacked.
  [[nodiscard]] std::unique_ptr<RowArray> open_member(const ZipArchive& archive, const std::string& member,
                                                      bool is_label) const {
    const Input head = archive.head(member, longest_npy_header);
    const NpyHeader header = read_npy_header(head, is_label);
    check_size(header, archive, member, head.name());
    return make(archive.unpack(member, options_.spools), is_label);
  }

  [[nodiscard]] std::unique_ptr<Source> make_source(std::vector<ArrayPair> pairs, std::vector<Remark> remarks) const {
    return make_word_source(std::move(pairs), *words_,
                            {.no_classes = options_.no_classes, .remarks = std::move(remarks)});
  }

 private:
  [[nodiscard]] std::unique_ptr<RowArray> make(Input input, bool is_label) const {
    const NpyHeader header = read_npy_header(input, is_label);
    if (header.word_bytes == 0)
      return std::make_unique<InputArray>(std::move(input), header.bytes, header.dtype, header.shape);
    return make_words(std::move(input), header);
  }

  [[nodiscard]] std::unique_ptr<RowArray> make_words(Input input, const NpyHeader& header) const {
    const std::string place = input.name();
    std::vector<std::uint64_t> shape = header.shape;
    shape.push_back(header.word_bytes);
    const auto stored = std::make_shared<InputArray>(std::move(input), header.bytes, header.dtype, shape);
    const auto read = [stored, header](std::uint64_t first, std::uint64_t n) {
      std::vector<std::byte> bytes(n * header.word_bytes);
      stored->read_rows(first, n, bytes);
      std::vector<std::string> words;
      for (std::uint64_t i = 0; i < n; ++i)
        words.push_back(
            decode_word(std::span{bytes}.subspan(i * header.word_bytes, header.word_bytes), header.is_wide));
      return words;
    };
    return std::make_unique<WordArray>(place, header.shape, read, words_);
  }

  const ImportOptions& options_;
  std::shared_ptr<WordList> words_ = std::make_shared<WordList>();
};

/// The names of .npy files or members, without the ending.
void add_name(std::vector<std::string>& names, const std::string& file) {
  if (file.size() > array_ending.size() && file.ends_with(array_ending))
    names.push_back(file.substr(0, file.size() - array_ending.size()));
}

/// The names of the arrays in a folder, .npy without the ending, and the archives in it.
std::vector<std::string> names_in_folder(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator at{folder, error}, end; !error && at != end; at.increment(error)) {
    if (at.depth() > 0) at.disable_recursion_pending();
    const std::string name = at->path().lexically_relative(folder).generic_string();
    add_name(names, name);
    if (is_archive(name)) names.push_back(name);
  }
  if (error) {
    core::refuse_shortage("cannot be listed", folder.string(), error.value());
    core::fail_usage({.what = fmt::format("cannot be listed: {}", error.message()),
                      .where = folder.string(),
                      .expected = "an .npz file or a folder with .npy files",
                      .fix = "give a path that exists and can be read"});
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Readers differ in which of two they take.
void refuse_twice(std::vector<std::string> names, const std::string& path) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  core::fail_usage({.what = fmt::format("the archive has '{}{}' twice", *twice, array_ending),
                    .where = path,
                    .expected = "each array once",
                    .fix = "write it again with numpy.savez"});
}

std::vector<PairNames> find_npz_pairs(const std::vector<std::string>& names, const ImportOptions& options,
                                      const std::string& path) {
  const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  const bool is_default = options.x_name == "x" && options.y_name == "y";
  if (is_default && names.size() == 1)
    core::fail_usage({.what = fmt::format("one array, '{}'", names.front()),
                      .where = path,
                      .expected = "inputs and labels",
                      .fix = "give the file of the labels after it, or the folder with both"});
  const bool is_unnamed = has("arr_0") && has("arr_1") && !has("x") && is_default;
  return is_unnamed ? find_pairs(names, "arr_0", "arr_1", path)
                    : find_pairs(names, options.x_name, options.y_name, path);
}

/// `open` opens an array by its name, as one that is a label or not.
template <class Open>
std::vector<ArrayPair> open_pairs(const std::vector<PairNames>& names, Open&& open) {
  std::vector<ArrayPair> pairs;
  for (const PairNames& pair : names) {
    auto x = open(pair.x, false);
    auto y = open(pair.y, true);
    pairs.push_back({pair.split, std::move(x), std::move(y)});
  }
  return pairs;
}

std::unique_ptr<Source> open_archive(const Arrays& arrays, const std::string& path, const ImportOptions& options) {
  const ZipArchive archive{path};
  std::vector<std::string> names, others;
  for (const std::string& member : archive.member_names()) {
    add_name(names, member);
    if (!member.ends_with(array_ending) && !member.ends_with('/')) others.push_back(member);
  }
  refuse_twice(names, path);
  const std::vector<PairNames> found = find_npz_pairs(names, options, path);
  std::vector<ArrayPair> pairs = open_pairs(found, [&](const std::string& name, bool is_label) {
    return arrays.open_member(archive, name + std::string{array_ending}, is_label);
  });
  std::vector<Remark> remarks = remarks_on_names(names, found);
  if (!others.empty())
    remarks.push_back(left_out(fmt::format("{} member{} that {} no array: {}{}", others.size(),
                                           others.size() == 1 ? "" : "s", others.size() == 1 ? "is" : "are",
                                           *std::ranges::min_element(others), others.size() == 1 ? "" : ", ...")));
  return arrays.make_source(std::move(pairs), std::move(remarks));
}

std::unique_ptr<Source> open_folder(const Arrays& arrays, const std::string& path, const ImportOptions& options) {
  const std::vector<std::string> names = names_in_folder(path);
  const std::vector<PairNames> found = find_pairs(names, options.x_name, options.y_name, path);
  std::vector<ArrayPair> pairs = open_pairs(found, [&](const std::string& name, bool is_label) {
    const fs::path file = fs::path{path} / (is_archive(name) ? name : name + std::string{array_ending});
    return arrays.open_file(file.string(), is_label);
  });
  return arrays.make_source(std::move(pairs), remarks_on_names(names, found));
}

std::vector<ArrayPair> open_two(const Arrays& arrays, const std::string& x_path, const std::string& y_path) {
  return open_pairs({{"train", x_path, y_path}},
                    [&](const std::string& path, bool is_label) { return arrays.open_file(path, is_label); });
}

}  // namespace

std::unique_ptr<Source> open_npy(const std::string& path, const ImportOptions& options) {
  const Arrays arrays{options};
  if (!options.y_path.empty()) return arrays.make_source(open_two(arrays, path, options.y_path), {});
  if (is_file(path) && path.ends_with(array_ending))
    core::fail_usage({.what = fmt::format("'{}' is one array", path),
                      .where = "lockstep shard import npy",
                      .expected = fmt::format("a folder with {0}{2} and {1}{2}, an .npz file with both, or two files",
                                              options.x_name, options.y_name, array_ending),
                      .fix = "give the file of the labels after it, or the folder"});
  return is_file(path) ? open_archive(arrays, path, options) : open_folder(arrays, path, options);
}

}  // namespace lockstep::data
