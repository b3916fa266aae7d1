// Two SharedSpools of one process stand for two ranks of a node.
#include "data/write/shared_spools.hpp"

#include <functional>

#include "unit/data/importers/fixture.hpp"

namespace lockstep::data {
namespace {

Spool spool_of(const std::string& text) {
  SpoolWriter writer;
  writer.append(std::as_bytes(std::span{text}));
  return std::move(writer).finish();
}

std::string text_of(const Spool& spool) {
  std::string text(spool.size(), '\0');
  spool.read_at(0, std::as_writable_bytes(std::span{text}));
  return text;
}

std::vector<Spool> make_none() { throw std::logic_error{"made a second time"}; }

TEST(SharedSpools, OthersOpenWhatTheFirstHasMade) {
  SharedSpools first;
  const auto two = first.take(2, [] { return make_spools(spool_of("one"), spool_of("two, longer")); });
  const auto one = first.take(1, [] { return make_spools(spool_of("")); });
  SharedSpools other{first.offer()};
  const auto opened = other.take(2, make_none);
  ASSERT_EQ(opened.size(), 2u);
  EXPECT_EQ(text_of(opened[0]), "one");
  EXPECT_EQ(text_of(opened[1]), "two, longer");
  EXPECT_EQ(other.take(1, make_none)[0].size(), 0u);
  EXPECT_TRUE(SharedSpools{}.offer().empty());
}

// As in a container of its own: what cannot be seen, or is another file, is made.
TEST(SharedSpools, MakesWhatItCannotOpen) {
  const Spool kept = spool_of("kept"), another = spool_of("another");
  SpoolPlace gone = kept.place(), mistaken = kept.place();
  gone.descriptor = 1000000;
  mistaken.inode = another.place().inode;
  for (const SpoolPlace& place : {gone, mistaken}) {
    const SpoolPlace both[] = {kept.place(), place};
    SharedSpools other{std::string_view{reinterpret_cast<const char*>(both), sizeof(both)}};
    const auto made = other.take(2, [] { return make_spools(spool_of("a"), spool_of("b")); });
    EXPECT_EQ(text_of(made[0]) + text_of(made[1]), "ab");
  }
}

class SharedImportTest : public ImporterTest {
 protected:
  using Open = std::unique_ptr<Source> (*)(const std::string&, const ImportOptions&);

  /// A second rank has the samples of the first though the content is damaged by then.
  void expect_shared(Open open, const std::string& input, const std::function<void()>& damage) const {
    SharedSpools first;
    const auto source = open(input, {.spools = &first});
    const Samples all = read_split(*source);
    damage();
    SharedSpools offered{first.offer()};
    const auto other = open(input, {.spools = &offered});
    EXPECT_EQ(other->spec(), source->spec());
    EXPECT_EQ(read_split(*other), all);
    EXPECT_EQ(other->remarks(), source->remarks());
    const auto extras = source->extra_files(), others = other->extra_files();
    ASSERT_EQ(extras.size(), others.size());
    for (std::size_t i = 0; i < extras.size(); ++i) EXPECT_EQ(extras[i].datasets, others[i].datasets);
    EXPECT_FALSE(core::thrown_by([&] { open(input, {}); })->problem().what.empty());
  }
};

TEST_F(SharedImportTest, Csv) {
  for (const char* const rows : {"1,2,0\n3,4,7\n", "1,2,0\n3,4,0.5\n", "1,2,wasp\n3,4,ant\n"}) {
    const std::string file = write("f.csv", std::string{"a,b,y\n"} + rows);
    expect_shared(open_csv, file, [&] { write("f.csv", "a,b,y\n"); });
  }
}

TEST_F(SharedImportTest, MovieLens) {
  const std::string file = write("ratings.dat", "9::70::5::0\n3::60::2.5::0\n9::60::1::0\n");
  expect_shared(open_movielens, file, [&] { write("ratings.dat", ""); });
}

TEST_F(SharedImportTest, Gzip) {
  using namespace std::string_literals;
  write_gzip("train-images-idx3-ubyte.gz", "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02\x01\x02\x03\x04"s);
  write_gzip("train-labels-idx1-ubyte.gz", "\0\0\x08\x01\0\0\0\x02\x07\x00"s);
  expect_shared(open_idx, folder_.string(), [&] {
    const std::string images = path("train-images-idx3-ubyte.gz");
    std::filesystem::resize_file(images, std::filesystem::file_size(images) - 9);
  });
}

}  // namespace
}  // namespace lockstep::data
