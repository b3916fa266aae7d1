#include "io/digest.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "temporary_folder.hpp"

namespace lockstep::io {
namespace {

TEST(Digest, IsXxh3OfTheCanonicalForm) {
  // From the reference implementation: `xxh128sum` of no bytes, and of "abc".
  EXPECT_EQ(digest_of({}), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(digest_of(bytes_of("abc")), "06b05ab6733a618578af5f94892f3950");
}

TEST(Digest, OfPiecesIsThatOfTheWhole) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7);
  for (const std::size_t cut : {0u, 1u, 100u, 1024u, 4999u, 5000u}) {
    Digest digest;
    digest.update(bytes_of(text).first(cut));
    digest.update(bytes_of(text).subspan(cut));
    EXPECT_EQ(digest.hex(), digest_of(bytes_of(text)));
  }
}

TEST(Digest, CanBeAskedForOnTheWayAndMoved) {
  Digest digest;
  digest.update(bytes_of("a"));
  EXPECT_EQ(digest.hex(), digest_of(bytes_of("a")));
  Digest moved = std::move(digest);
  moved.update(bytes_of("bc"));
  EXPECT_EQ(moved.hex(), digest_of(bytes_of("abc")));
}

TEST(Digest, OfAFileIsThatOfItsBytes) {
  const TemporaryFolder folder;
  for (const std::size_t n : {std::size_t{0}, std::size_t{3}, std::size_t{1} << 20, (std::size_t{5} << 19) + 1}) {
    std::string text(n, 'x');
    for (std::size_t i = 0; i < n; i += 1000) text[i] = static_cast<char>(i / 1000);
    put(folder / "file", text);
    EXPECT_EQ(digest_of_file(folder / "file"), digest_of(bytes_of(text))) << n;
  }
  expect_error([&] { static_cast<void>(digest_of_file(folder / "none")); }, core::ExitCode::usage, {folder / "none"});
}

}  // namespace
}  // namespace lockstep::io
