#include "data/image/resize_loops_x86.hpp"

namespace lockstep::data {

constinit const ResizeLoops avx512_resize_loops{
    .gray_row = resize_row<1>, .colour_row = resize_colour_row, .column_run = resize_column_run};

}  // namespace lockstep::data
