// A folder for files of a test, and what a source gives from them.
// Invariant: the folder is gone when the test is over.
// Used by the tests of the importers.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "data/importers/importers.hpp"
#include "unit/core/thrown.hpp"

namespace lockstep::data {

class ImporterTest : public testing::Test {
 protected:
  ImporterTest() { std::filesystem::create_directories(folder_); }
  ~ImporterTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream{folder_ / name, std::ios::binary} << content;
    return path(name);
  }

  std::string write_gzip(const std::string& name, const std::string& content) const {
    const std::string file = path(name);
    gzFile out = gzopen(file.c_str(), "wb");
    EXPECT_EQ(gzwrite(out, content.data(), static_cast<unsigned>(content.size())), static_cast<int>(content.size()));
    EXPECT_EQ(gzclose(out), Z_OK);
    return file;
  }

  [[nodiscard]] static std::string content(const std::string& file) {
    std::ifstream in{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
  }

  const std::filesystem::path folder_ =
      std::filesystem::path{testing::TempDir()} / ("importers_" + std::to_string(::getpid()));
};

struct Samples {
  std::vector<std::byte> x;
  std::vector<std::byte> y;
  bool operator==(const Samples&) const = default;
};

inline Samples read(Source& source, std::size_t split, std::uint64_t first, std::uint64_t n) {
  Samples samples{std::vector<std::byte>(n * source.spec().x.bytes()),
                  std::vector<std::byte>(n * source.spec().y.bytes())};
  source.read(split, first, n, samples.x, samples.y);
  return samples;
}

inline Samples read_split(Source& source, std::size_t split = 0) {
  return read(source, split, 0, source.splits().at(split).n_samples);
}

/// Every range of a split, in no order, gives what the whole gives.
inline void expect_random_access(Source& source, std::size_t split = 0) {
  const std::uint64_t n = source.splits().at(split).n_samples;
  const Samples all = read_split(source, split);
  for (std::uint64_t length : {std::uint64_t{1}, n / 2, n}) {
    for (std::uint64_t k = 0; k + length <= n; ++k) {
      const std::uint64_t first = n - length - k;
      const Samples part = read(source, split, first, length);
      const auto cut = [&](const std::vector<std::byte>& whole, std::uint64_t bytes) {
        const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(first * bytes);
        return std::vector<std::byte>(begin, begin + static_cast<std::ptrdiff_t>(length * bytes));
      };
      ASSERT_EQ(part.x, cut(all.x, source.spec().x.bytes())) << first << " " << length;
      ASSERT_EQ(part.y, cut(all.y, source.spec().y.bytes())) << first << " " << length;
    }
  }
}

template <class T>
std::vector<T> values(const std::vector<std::byte>& data) {
  std::vector<T> result(data.size() / sizeof(T));
  std::memcpy(result.data(), data.data(), data.size());
  return result;
}

/// The numbers as the bytes of a file.
template <class T>
std::string bytes(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

/// `f` throws a usage Error whose text has all these words.
template <class F>
void expect_usage(F&& f, std::initializer_list<const char*> words) {
  const auto error = core::thrown_by(std::forward<F>(f));
  if (!error) return;
  EXPECT_EQ(error->code(), core::ExitCode::usage) << error->what();
  EXPECT_FALSE(error->problem().expected.empty()) << error->what();
  EXPECT_FALSE(error->problem().fix.empty()) << error->what();
  for (const char* word : words)
    EXPECT_NE(std::string{error->what()}.find(word), std::string::npos) << word << " in\n" << error->what();
}

}  // namespace lockstep::data
