#include <gtest/gtest.h>

#include "unit/data/importers/fixture.hpp"

namespace lockstep::data {
namespace {

class MovieLensTest : public ImporterTest {};

TEST_F(MovieLensTest, NumbersIdsInTheirOrder) {
  write("ratings.csv", "userId,movieId,rating,timestamp\n7,300,4.5,1\n3,50,0.5,2\n7,50,3,3\n");
  const auto source = open_movielens(folder_.string(), {});
  EXPECT_EQ(source->spec().x, (ArraySpec{core::DType::int32, {2}}));
  EXPECT_EQ(source->spec().y, (ArraySpec{core::DType::float32, {}}));
  const Samples all = read_split(*source);
  EXPECT_EQ(values<std::int32_t>(all.x), (std::vector<std::int32_t>{1, 1, 0, 0, 1, 0}));
  EXPECT_EQ(values<float>(all.y), (std::vector<float>{4.5F, 0.5F, 3}));
  expect_random_access(*source);
  const auto extras = source->extra_files();
  ASSERT_EQ(extras.size(), 1);
  EXPECT_EQ(extras[0].name, "ids.h5");
  using Ids = std::vector<std::int64_t>;
  const std::vector<std::pair<std::string, Ids>> expected{{"user", {3, 7}}, {"item", {50, 300}}};
  EXPECT_EQ(extras[0].datasets, expected);
  EXPECT_EQ(source->remarks(), (std::vector{left_out("the timestamps of 3 ratings"),
                                            note("2 users and 2 items, ratings from 0.5 to 4.5")}));
  EXPECT_EQ(source->name_of(0, 1), "rating 1 (user 3, item 50)");
}

TEST_F(MovieLensTest, ReadsBothFormatsAlike) {
  const std::string csv =
      write("a.csv", "userId,movieId,rating,timestamp\r\n1,1193,5,978300760\r\n2,661,3,978302109\r\n");
  const std::string dat = write("ratings.dat", "1::1193::5::978300760\n2::661::3::978302109\n");
  EXPECT_EQ(read_split(*open_movielens(csv, {})), read_split(*open_movielens(dat, {})));
  const std::string data = write("u.data", "1\t1193\t5\t978300760\n2\t661\t3\t978302109\n");
  EXPECT_EQ(read_split(*open_movielens(csv, {})), read_split(*open_movielens(data, {})));
  EXPECT_EQ(open_movielens(folder_.string(), {})->splits()[0].n_samples, 2);
  std::filesystem::remove(dat);
  EXPECT_EQ(open_movielens(folder_.string(), {})->splits()[0].n_samples, 2);
}

TEST_F(MovieLensTest, NamesTheLine) {
  const auto expect = [&](const std::string& text, std::initializer_list<const char*> words) {
    const std::string file = write("ratings.csv", text);
    expect_usage([&] { open_movielens(file, {}); }, words);
  };
  const std::string header = "userId,movieId,rating,timestamp\n";
  expect(header + "1,2,3,4\nx,2,3,4\n", {"user 'x'", "ratings.csv, line 3"});
  expect(header + "1,-2,3,4\n", {"item '-2'", "line 2"});
  expect(header + "1,2,nan,4\n", {"rating 'nan'", "line 2"});
  expect(header + "1,2\n", {"2 fields", "line 2", "user,item,rating,timestamp"});
  expect("1::2::3::4\n1,2,3,4\n", {"1 fields", "line 2", "user::item::rating::timestamp"});
  expect("1\t2\t3\t4\n1\t2\n", {"2 fields", "line 2", "user (tab) item"});
  expect("movieId,title,genres\n", {"first line 'movieId,title,genres'", "line 1", "userId,movieId,rating"});
  expect(header, {"0 ratings"});
  expect("", {"0 ratings"});
  std::filesystem::remove(path("ratings.csv"));
  expect_usage([&] { open_movielens(folder_.string(), {}); }, {"no ratings in it", "ratings.dat"});
  expect_usage([&] { open_movielens(path("none"), {}); }, {"no such file or folder"});
}

}  // namespace
}  // namespace lockstep::data
