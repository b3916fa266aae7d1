#include "nn/cuda/plan_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "core/fnv.hpp"
#include "core/log.hpp"
#include "core/pending.hpp"

namespace lockstep::nn::cuda {
namespace {

namespace fs = std::filesystem;

// Increase when the stored format, or the meaning of keys, changes.
constexpr std::string_view magic = "lockstep plans 1\n";

class PlanWriter {
 public:
  void number(std::uint64_t value) { append(&value, sizeof value); }
  void real(double value) { append(&value, sizeof value); }
  void bytes(std::span<const std::byte> content) {
    number(content.size());
    append(content.data(), content.size());
  }
  void text(std::string_view content) { bytes(std::as_bytes(std::span{content.data(), content.size()})); }
  void append(const void* data, std::size_t n) {
    const auto* const begin = static_cast<const std::byte*>(data);
    content_.insert(content_.end(), begin, begin + n);
  }
  std::vector<std::byte> finish() {
    const std::uint32_t sum = core::crc32c(content_);
    append(&sum, sizeof sum);
    return std::move(content_);
  }

 private:
  std::vector<std::byte> content_{};
};

// Missing content reads as empty and makes the result not good.
class PlanReader {
 public:
  explicit PlanReader(std::span<const std::byte> content) : left_{content} {}

  std::span<const std::byte> take(std::uint64_t n) {
    is_good_ = is_good_ && n <= left_.size();
    if (!is_good_) return {};
    const auto taken = left_.first(static_cast<std::size_t>(n));
    left_ = left_.subspan(static_cast<std::size_t>(n));
    return taken;
  }
  template <class T>
  T value() {
    T value{};
    if (const auto bytes = take(sizeof value); is_good_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::span<const std::byte> bytes() { return take(value<std::uint64_t>()); }
  std::string text() {
    const auto content = bytes();
    return {reinterpret_cast<const char*>(content.data()), content.size()};
  }
  [[nodiscard]] bool is_good() const { return is_good_; }
  [[nodiscard]] bool is_at_end() const { return is_good_ && left_.empty(); }

 private:
  std::span<const std::byte> left_;
  bool is_good_ = true;
};

std::optional<StoredPlans> read_file(const std::string& path, std::string_view machine) {
  std::ostringstream content;
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return std::nullopt;
  std::ifstream file{path, std::ios::binary};
  if (!(content << file.rdbuf())) return std::nullopt;
  return read_plans(std::as_bytes(std::span{content.view()}), machine);
}

// Returns "" if there is none.
std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::vector<std::byte> write_plans(std::string_view machine, const StoredPlans& plans) {
  PlanWriter writer;
  writer.append(magic.data(), magic.size());
  writer.text(machine);
  writer.number(plans.size());
  for (const auto& [key, plan] : plans) {
    writer.text(key);
    writer.text(plan.name);
    writer.real(plan.seconds);
    writer.bytes(plan.code);
  }
  return writer.finish();
}

std::optional<StoredPlans> read_plans(std::span<const std::byte> content, std::string_view machine) {
  std::uint32_t sum = 0;
  if (content.size() < sizeof sum) return std::nullopt;
  const auto summed = content.first(content.size() - sizeof sum);
  std::memcpy(&sum, content.data() + summed.size(), sizeof sum);
  if (core::crc32c(summed) != sum) return std::nullopt;
  PlanReader reader{summed};
  const auto found = reader.take(magic.size());
  if (!std::ranges::equal(found, std::as_bytes(std::span{magic})) || reader.text() != machine) return std::nullopt;
  StoredPlans plans;
  const auto n = reader.value<std::uint64_t>();
  for (std::uint64_t i = 0; i < n && reader.is_good(); ++i) {
    std::string key = reader.text();
    StoredPlan plan{.name = reader.text(), .seconds = reader.value<double>()};
    const auto code = reader.bytes();
    plan.code.assign(code.begin(), code.end());
    if (!std::isfinite(plan.seconds) || plan.name.empty()) return std::nullopt;
    plans.insert_or_assign(std::move(key), std::move(plan));
  }
  if (!reader.is_at_end()) return std::nullopt;
  return plans;
}

PlanCache::PlanCache(const std::string& folder, std::string machine) : machine_{std::move(machine)} {
  if (folder.empty()) return;
  path_ = fmt::format("{}/plans-{:016x}", folder, core::fnv1a(machine_));
  plans_ = read_file(path_, machine_).value_or(StoredPlans{});
}

const StoredPlan* PlanCache::find(const std::string& key) const {
  const auto found = plans_.find(key);
  return found == plans_.end() ? nullptr : &found->second;
}

void PlanCache::add(const std::string& key, StoredPlan plan) {
  plans_[key] = std::move(plan);
  is_changed_ = true;
}

void PlanCache::save() {
  if (path_.empty() || !std::exchange(is_changed_, false)) return;
  try {
    if (auto others = read_file(path_, machine_)) plans_.merge(*others);
    fs::create_directories(fs::path{path_}.parent_path());
    core::write_whole(path_, write_plans(machine_, plans_));
  } catch (const std::exception& error) {
    core::log_info(fmt::format(
        "the fastest cuDNN plans are not kept for the next run: {}; set LOCKSTEP_PLAN_CACHE to a folder, or to off",
        error.what()));
    path_.clear();
  }
}

std::string plan_cache_folder() {
  const std::string asked = variable("LOCKSTEP_PLAN_CACHE"), cache = variable("XDG_CACHE_HOME"),
                    home = variable("HOME");
  if (!asked.empty()) return asked == "off" ? "" : asked;
  if (!cache.empty()) return cache + "/lockstep";
  return home.empty() ? "" : home + "/.cache/lockstep";
}

}  // namespace lockstep::nn::cuda
