// Which files of MovieLens are read, and which are not.
#include "unit/data/importers/fixture.hpp"

namespace lockstep::data {
namespace {

class MovieLensFiles : public ImporterTest {};

TEST_F(MovieLensFiles, OthersThanTheFirstAreNamed) {
  write("ratings.csv", "userId,movieId,rating,timestamp\n1,2,3,4\n");
  write("ratings.dat", "1::2::3::4\n");
  write("u.data", "1\t2\t3\t4\n");
  const auto source = open_movielens(folder_.string(), {});
  ASSERT_EQ(source->remarks().size(), 4U);
  EXPECT_EQ(source->remarks()[0], left_out("ratings.dat, as ratings.csv is read"));
  EXPECT_EQ(source->remarks()[1], left_out("u.data, as ratings.csv is read"));
}

TEST_F(MovieLensFiles, AHeaderIsComparedByItsFields) {
  for (const char* header : {"userId,movieId,rating,timestamp", "userId,movieId,rating", "userId, movieId, rating",
                             "\"userId\",\"movieId\",\"rating\",\"timestamp\""})
    EXPECT_EQ(open_movielens(write("ratings.csv", std::string{header} + "\n1,2,3\n"), {})->remarks().size(), 1U)
        << header << ": no timestamp is left out";
  for (const char* header : {"userId,movieId,rating_mean", "userId,movieId,ratings,timestamp", "userId,movieId",
                             "userId,movieId,rating,tag", "movieId,userId,rating", "userId,movieId,rating,timestamp,x"})
    expect_usage([&] { open_movielens(write("ratings.csv", std::string{header} + "\n1,2,3\n"), {}); },
                 {"first line", header, "userId,movieId,rating,timestamp"});
}

}  // namespace
}  // namespace lockstep::data
