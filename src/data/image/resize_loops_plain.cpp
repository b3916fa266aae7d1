#include "data/image/resize_loops_body.hpp"

namespace lockstep::data {

constinit const ResizeLoops plain_resize_loops{
    .gray_row = resize_row<1>, .colour_row = resize_row<3>, .column_run = resize_column_run};

}  // namespace lockstep::data
