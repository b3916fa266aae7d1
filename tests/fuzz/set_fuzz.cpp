// The folder of a set of shards: what it holds is verified, counted and read for an epoch, as a user would.
// Input: a letter for the set that is made, one for each of its shards and for the manifest, and `m` if check sums and
// digests are to match what the files then have. Parts follow: changes of 5 bytes (file, offset from the end, mask), a
// text of the manifest and what takes its place, and the names and contents of more files.
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>

#include "core/crc32c.hpp"
#include "data/format/little_endian.hpp"
#include "data/format/manifest_text.hpp"
#include "data/load/loader.hpp"
#include "data/read/block.hpp"
#include "data/read/verify.hpp"
#include "data/write/shard_writer.hpp"
#include "importer_fuzz.hpp"
#include "io/digest.hpp"
#include "io/folder.hpp"
#include "training/shard/class_counts.hpp"

namespace {

using namespace lockstep;
namespace fs = std::filesystem;

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 22;  // of a sample, or of a chunk
constexpr std::size_t n_shards = 3;

const fuzz::Folder& folder() {
  static const fuzz::Folder one;
  return one;
}

std::string content_of(const std::string& path) {
  std::ifstream stream{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, {}};
}

void write(const std::string& path, std::string_view content) { std::ofstream{path, std::ios::binary} << content; }

struct MadeSet {
  data::Manifest manifest{};
  std::array<std::string, n_shards> files{};
};

std::array<data::ShardEntry*, n_shards> shards_of(data::Manifest& manifest) {
  return {&manifest.splits[0].shards[0], &manifest.splits[0].shards[1], &manifest.splits[1].shards[0]};
}

/// A PPM image of 2 x 2 pixels, or such pixels of it as a raw sample has.
std::vector<std::byte> sample_of(const data::SetSpec& spec, std::uint64_t number) {
  const std::string head = spec.is_encoded() ? "P6\n2 2\n255\n" : "";
  std::vector<std::byte> x(head.size() + (spec.is_encoded() ? 12 : spec.x.bytes()), static_cast<std::byte>(number));
  for (std::size_t i = 0; i < head.size(); ++i) x[i] = static_cast<std::byte>(head[i]);
  return x;
}

/// Split train of 12 samples in two shards, and val of 5 in one.
MadeSet make_set(char letter) {
  MadeSet made;
  data::Manifest& manifest = made.manifest;
  const bool is_encoded = letter == 'e';
  manifest.spec.classes = {"a", "b", "c"};
  if (is_encoded) manifest.spec.encoding = "image";
  if (!is_encoded) manifest.spec.x.shape = {2, 3};
  manifest.filter = letter == 'z' ? io::Filter::deflate : io::Filter::none;
  manifest.chunk_samples = is_encoded ? 0 : 4;
  const data::ShardLayout layout{.shard_samples = 8,
                                 .chunk_samples = manifest.chunk_samples,
                                 .encoded_chunk_bytes = 64,
                                 .filter = manifest.filter,
                                 .level = 1};
  const std::string path = folder().path() + "/made-" + letter;
  fs::create_directories(path);
  for (const auto& [name, n_samples] : {std::pair<const char*, std::uint64_t>{"train", 12}, {"val", 5}}) {
    data::Split split{.name = name, .n_samples = n_samples};
    for (std::uint64_t first = 0; first < n_samples; first += layout.shard_samples) {
      const std::uint64_t n = std::min(layout.shard_samples, n_samples - first);
      data::ShardWriter writer{path, {name, split.shards.size(), first, n}, manifest.spec, layout};
      for (std::uint64_t i = first; i < first + n; ++i) {
        const std::byte label = static_cast<std::byte>(i % 3);
        const std::vector<std::byte> x = sample_of(manifest.spec, i);
        if (is_encoded)
          writer.append_encoded(x, {&label, 1});
        else
          writer.append(x, {&label, 1});
      }
      split.shards.push_back(writer.finish());
    }
    manifest.splits.push_back(std::move(split));
  }
  const auto shards = shards_of(manifest);
  for (std::size_t i = 0; i < n_shards; ++i) made.files[i] = content_of(path + "/" + shards[i]->file);
  return made;
}

const MadeSet& made_set(char letter) {
  static std::map<char, MadeSet> all;
  const char kind = letter == 'z' || letter == 'e' ? letter : 'r';
  const auto found = all.find(kind);
  return found != all.end() ? found->second : all.emplace(kind, make_set(kind)).first->second;
}

/// The folder as it is asked for.
struct AskedFor {
  data::Manifest manifest{};
  std::array<std::string, n_shards> files{};
  std::array<char, n_shards + 1> letters{};  ///< of the files, and of the manifest
  bool is_mended = false;
  std::string_view from{}, to{};
  std::vector<std::pair<std::string_view, std::string_view>> more{};  ///< names and contents
};

void change(std::array<std::string, n_shards>& files, std::string_view changes) {
  constexpr std::size_t each = 5;
  const auto at = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(changes[i])}; };
  for (std::size_t i = 0; i + each <= changes.size(); i += each) {
    std::string& file = files[at(i) % n_shards];
    if (file.empty()) continue;
    const std::size_t back = (at(i + 1) | at(i + 2) << 8 | at(i + 3) << 16) % file.size();
    char& byte = file[file.size() - 1 - back];
    byte = static_cast<char>(static_cast<unsigned char>(byte) ^ at(i + 4));
  }
}

/// Makes a manifest's entry, and the check sum of the file's index, match what the file has.
void mend(data::ShardEntry& shard, std::string& file) {
  constexpr std::size_t crc_bytes = sizeof(std::uint32_t);
  const io::Extent& index = shard.index;
  if (index.bytes >= crc_bytes && index.address + index.bytes <= file.size()) {
    const auto bytes = std::as_bytes(std::span{file}).subspan(index.address, index.bytes - crc_bytes);
    shard.index_crc = core::crc32c(bytes);
    std::vector<std::byte> crc;
    data::append_little_endian(crc, shard.index_crc);
    std::memcpy(file.data() + index.address + index.bytes - crc_bytes, crc.data(), crc.size());
  }
  shard.bytes = file.size();
  shard.digest = io::digest_of(std::as_bytes(std::span{file}));
}

/// Nothing if it is too short.
std::optional<AskedFor> parse(std::string_view input) {
  constexpr std::size_t n_letters = 2 + n_shards + 1;
  if (input.size() < n_letters) return std::nullopt;
  const MadeSet& made = made_set(input[0]);
  AskedFor asked{.manifest = made.manifest, .files = made.files, .is_mended = input[n_letters - 1] == 'm'};
  std::copy_n(input.begin() + 1, asked.letters.size(), asked.letters.begin());
  fuzz::Parts parts{reinterpret_cast<const std::uint8_t*>(input.data()) + n_letters, input.size() - n_letters};
  for (std::size_t i = 0; i < n_shards; ++i) {
    std::string& file = asked.files[i];
    if (asked.letters[i] == 't') file.resize(file.size() / 2);
    if (asked.letters[i] == 'g') file += 'g';
    if (asked.letters[i] == 'n') file = made.files[(i + 1) % n_shards];
  }
  change(asked.files, parts.part());
  asked.from = parts.part();
  asked.to = parts.part();
  while (!parts.rest().empty()) {
    const std::string_view name = parts.part();
    asked.more.emplace_back(name, parts.part());
  }
  const auto shards = shards_of(asked.manifest);
  for (std::size_t i = 0; asked.is_mended && i < n_shards; ++i) mend(*shards[i], asked.files[i]);
  return asked;
}

std::string manifest_text(const AskedFor& asked) {
  const std::string text = data::serialize(asked.manifest);
  std::string body{data::split_seal(text)->body};
  if (const std::size_t at = body.find(asked.from); !asked.from.empty() && at != std::string::npos)
    body.replace(at, asked.from.size(), asked.to);
  std::string sealed = data::seal(body);
  if (asked.letters.back() == 't') sealed.resize(sealed.size() / 2);
  if (asked.letters.back() == 'g') sealed += 'g';
  return sealed;
}

/// Whether its content can be read at `path`. Links lead to what this program makes, and nowhere else.
bool place(char letter, const std::string& path, const std::string& beside, std::string_view content) {
  switch (letter) {
    case 'a': return false;
    case 'd': fs::create_symlink("nowhere", path); return false;
    case 's': fs::create_symlink(fs::path{path}.filename(), path); return false;
    case 'p':
      if (mkfifo(path.c_str(), 0600) != 0) std::abort();
      return false;
    case 'f':
      fs::create_directory(path);
      write(path + "/" + fs::path{path}.filename().string(), content);
      return false;
    case 'l':
      write(beside, content);
      fs::create_symlink(beside, path);
      return true;
    default: write(path, content); return true;
  }
}

/// Whether all that the manifest names can be read.
bool make_folder(const std::string& path, const AskedFor& asked) {
  fs::remove_all(path);
  fs::create_directory(path);
  const std::string beside = folder().path() + "/beside-";
  const std::array names{"train-00000.h5", "train-00001.h5", "val-00000.h5", "manifest.json"};
  bool is_there = true;
  for (std::size_t i = 0; i < names.size(); ++i)
    is_there &= place(asked.letters[i], path + "/" + names[i], beside + std::to_string(i),
                      i < n_shards ? asked.files[i] : manifest_text(asked));
  for (const auto& [name, content] : asked.more) {
    const std::string other = path + "/" + std::string{name};
    if (io::is_plain_name(name) && !fs::exists(fs::symlink_status(other))) write(other, content);
  }
  return is_there;
}

void check_words(std::string_view text) {
  for (const std::string_view word : {"json.exception", "broken promise"})
    if (text.find(word) != std::string_view::npos) std::abort();
}

/// Whether it succeeds; core::Error is the only other end.
template <class Work>
bool succeeds(Work&& work) {
  try {
    work();
    return true;
  } catch (const core::Error& error) {
    check_words(error.what());
    return false;
  }
}

/// Whether nothing that is read claims more memory than a test may take.
bool is_small(const std::string& path) {
  bool is_small = true;
  static_cast<void>(succeeds([&] {
    const data::Manifest manifest = data::read_manifest(path);
    is_small = manifest.spec.x.bytes() <= most_bytes && manifest.spec.y.bytes() <= most_bytes;
    data::ReadCounters counters;
    for (const data::Split& split : manifest.splits)
      for (const data::ShardEntry& shard : split.shards)
        static_cast<void>(succeeds([&] {
          const data::ShardReader reader{path, shard, manifest.spec, counters};
          for (const data::ArrayIndex& array : reader.index().arrays) is_small &= array.chunk_bytes() <= most_bytes;
        }));
  }));
  return is_small;
}

bool is_whole(const std::string& path) {
  data::VerifyResult result;
  const bool is_read = succeeds([&] { result = data::verify(path, runtime::Communicator::alone(), {}); });
  for (const data::Damage& damage : result.damages) check_words(damage.text);
  return is_read && result.damages.empty() && !result.unreadable;
}

void read_epoch(const std::string& path, const std::string& split, data::Order order) {
  constexpr int most_batches = 100;
  const auto set = std::make_shared<const data::ShardSet>(path, split);
  if (set->n_samples() == 0) return;
  data::LoaderOptions options{.global_batch = 5, .sampler = {.order = order}, .cache = data::Cache::none, .threads = 0};
  if (set->spec().is_encoded())
    options.augment.steps = {{.kind = data::AugmentStep::Kind::resize, .height = 4, .width = 4}};
  data::Loader loader{runtime::Communicator::alone(), set, options};
  loader.begin_epoch(0);
  for (int i = 0; i < most_batches && loader.next() != nullptr; ++i) {
  }
}

/// Whether all can be read.
bool read_all(const std::string& path) {
  data::Manifest manifest;
  bool is_read = succeeds([&] { manifest = data::read_manifest(path); });
  for (const data::Split& split : manifest.splits) {
    is_read &= succeeds([&] { static_cast<void>(training::shard::count_classes(path, manifest, split.name, 0, 1)); });
    for (const data::Order order : {data::Order::sequential, data::Order::blocked, data::Order::keyed})
      is_read &= succeeds([&] { read_epoch(path, split.name, order); });
  }
  return is_read;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > fuzz::most_input_bytes) return 0;
  const std::string_view input{reinterpret_cast<const char*>(data), size};
  const std::optional<AskedFor> asked = parse(input);
  if (!asked) return 0;
  const std::string path = folder().path() + "/set";
  const bool is_there = make_folder(path, *asked);
  if (!is_small(path)) return 0;
  const bool was_whole = is_whole(path), was_read = read_all(path);
  const char of_manifest = asked->letters.back();
  const bool is_as_made =
      is_there && asked->files == made_set(input[0]).files && of_manifest != 't' && of_manifest != 'g';
  if (!asked->from.empty()) return 0;
  if (is_as_made && asked->more.empty() && !was_whole) std::abort();
  if (was_whole && !was_read) std::abort();
  if (!is_as_made && !asked->is_mended && was_whole) std::abort();
  return 0;
}
