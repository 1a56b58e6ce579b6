// L-BFGS, with a line search for the strong Wolfe conditions. Equations are those of Nocedal and Wright, Numerical Optimization, 2006.
#include <cresset/nn/lbfgs.h>

#include <algorithm>
#include <cmath>

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

namespace cresset::optim {
namespace {

double largest(const Tensor& t) { return t.abs().max().item<double>(); }
double product(const Tensor& a, const Tensor& b) { return a.dot(b).item<double>(); }
/// Complex numbers as pairs of real ones.
Tensor real_view(const Tensor& t) { return t.is_complex() ? cresset::view_as_real(t) : t; }

}  // namespace

/// One place on the line of a search: step, loss, gradient, slope.
struct LBFGS::Point {
  double t, loss;
  Tensor gradient;
  double slope;
};

/// The line from the present parameters along a direction.
class LBFGS::Line {
 public:
  Line(LBFGS& optimizer, const LossClosure& closure, Tensor direction)
      : optimizer_(optimizer), closure_(closure), direction_(std::move(direction)) {
    for (const Tensor& p : optimizer.parameters()) start_.push_back(p.clone());
  }
  /// Evaluates at step t; the parameters are at the start again afterwards.
  Point at(double t) {
    ++calls;
    optimizer_.move(t, direction_);
    const double loss = loss_of(closure_).item<double>();
    const Tensor gradient = optimizer_.flat_gradient();
    for (std::size_t i = 0; i < start_.size(); ++i) optimizer_.parameters()[i].copy_(start_[i]);
    return {t, loss, gradient, product(gradient, direction_)};
  }
  Point search(const Point& start, double t, double tolerance);
  int64_t calls = 0;

 private:
  LBFGS& optimizer_;
  const LossClosure& closure_;
  const Tensor direction_;
  std::vector<Tensor> start_;
};

namespace {

constexpr double kEnoughDecrease = 1e-4, kEnoughFlattening = 0.9;  // c1 and c2 of the strong Wolfe conditions
constexpr int kSearchRounds = 25;

/// Where the cubic through two points with their slopes is lowest, within bounds (equation 3.59).
template <class Point>
double cubic_minimum(Point a, Point b, double low, double high) {
  if (a.t > b.t) std::swap(a, b);
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t), square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  return std::clamp(b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)), low, high);
}

}  // namespace

/// A step that lowers the loss enough and flattens the slope (algorithms 3.5 and 3.6).
LBFGS::Point LBFGS::Line::search(const Point& start, double t, double tolerance) {
  const auto lowers_too_little = [&](const Point& p) { return p.loss > start.loss + kEnoughDecrease * p.t * start.slope; };
  const auto is_flat = [&](const Point& p) { return std::abs(p.slope) <= -kEnoughFlattening * start.slope; };
  const double length = largest(direction_);

  Point previous = start, now = at(t);
  std::optional<std::pair<Point, Point>> bracket;
  int round = 0;
  for (; round < kSearchRounds && !bracket; ++round) {
    if (lowers_too_little(now) || (round > 1 && now.loss >= previous.loss)) {
      bracket.emplace(previous, now);
      break;
    }
    if (is_flat(now)) return now;
    if (now.slope >= 0) {
      bracket.emplace(previous, now);
      break;
    }
    t = cubic_minimum(previous, now, now.t + 0.01 * (now.t - previous.t), now.t * 10);
    previous = std::exchange(now, at(t));
  }
  auto [best, other] = bracket.value_or(std::pair(start, now));
  if (other.loss < best.loss) std::swap(best, other);

  bool stuck = false;  // was the last step already near an end of the bracket?
  for (; round < kSearchRounds; ++round) {
    const auto [low, high] = std::minmax(best.t, other.t);
    if ((high - low) * length < tolerance) break;
    t = cubic_minimum(best, other, low, high);
    const double margin = 0.1 * (high - low);
    const bool near_an_end = std::min(high - t, t - low) < margin;
    if (near_an_end && (stuck || t >= high || t <= low)) {
      t = std::abs(t - high) < std::abs(t - low) ? high - margin : low + margin;
      stuck = false;
    } else {
      stuck = near_an_end;
    }
    now = at(t);
    if (lowers_too_little(now) || now.loss >= best.loss) {
      other = now;
      if (other.loss < best.loss) std::swap(best, other);
      continue;
    }
    if (is_flat(now)) return now;
    if (now.slope * (other.t - best.t) >= 0) other = best;
    best = now;
  }
  return best;
}

LBFGS::LBFGS(const std::vector<OptimizerParamGroup>& groups, const LBFGSOptions& defaults) : Optimizer(groups, defaults.clone()) {
  CRESSET_CHECK_VALUE(groups_.size() == 1, "LBFGS doesn't support per-parameter options (parameter groups)");
  CRESSET_CHECK_VALUE(defaults.lr() >= 0, "Invalid learning rate: ", defaults.lr());
}

/// The gradients of all parameters as one vector of real numbers.
Tensor LBFGS::flat_gradient() {
  std::vector<Tensor> parts;
  for (const Tensor& p : parameters()) parts.push_back(real_view(p.grad().defined() ? p.grad() : cresset::zeros_like(p)).reshape({-1}));
  return cresset::cat(parts, 0);
}

/// Adds t times the direction to the parameters.
void LBFGS::move(double t, const Tensor& direction) {
  int64_t at = 0;
  for (const Tensor& p : parameters()) {
    const Tensor real = real_view(p);
    real.add_(direction.narrow(0, at, real.numel()).view_as(real), t);
    at += real.numel();
  }
}

/// Takes the last step and what it did to the gradient into the history, unless the curvature is not positive.
void LBFGS::remember(const Tensor& gradient) {
  const Tensor change = gradient.sub(previous_gradient_), moved = direction_.mul(t_);
  const double curvature = product(change, moved);
  if (curvature <= 1e-10) return;
  if (static_cast<int64_t>(history_.size()) == static_cast<const LBFGSOptions&>(groups_[0].options()).history_size()) history_.pop_front();
  history_.push_back({change, moved, 1 / curvature});
  scale_ = curvature / product(change, change);
}

/// Minus the inverse Hessian's estimate times the gradient, by the two-loop recursion (algorithm 7.4).
Tensor LBFGS::direction_from(const Tensor& gradient) const {
  std::vector<double> weights(history_.size());
  const Tensor q = gradient.neg();
  for (std::size_t i = history_.size(); i-- > 0;) {
    weights[i] = product(history_[i].parameters, q) * history_[i].inverse;
    q.add_(history_[i].gradient, -weights[i]);
  }
  const Tensor r = q.mul(scale_);
  for (std::size_t i = 0; i < history_.size(); ++i)
    r.add_(history_[i].parameters, weights[i] - product(history_[i].gradient, r) * history_[i].inverse);
  return r;
}

Tensor LBFGS::step(LossClosure closure) {
  CRESSET_CHECK(closure != nullptr, "LBFGS requires a closure function");
  const NoGradGuard no_grad;
  const auto& o = static_cast<const LBFGSOptions&>(groups_[0].options());
  const bool searches = o.line_search_fn().has_value();
  CRESSET_CHECK(!searches || o.line_search_fn() == "strong_wolfe", "only 'strong_wolfe' is supported");
  const int64_t most_evaluations = o.max_eval().value_or(o.max_iter() * 5 / 4);

  const Tensor first_loss = loss_of(closure);
  double loss = first_loss.item<double>();
  Tensor gradient = flat_gradient();
  int64_t evaluations = 1;
  ++evaluations_;
  if (largest(gradient) <= o.tolerance_grad()) return first_loss;

  for (int64_t iteration = 1; iteration <= o.max_iter(); ++iteration) {
    const bool first = ++iterations_ == 1;
    if (first) {
      direction_ = gradient.neg();
      history_.clear();
      scale_ = 1;
    } else {
      remember(gradient);
      direction_ = direction_from(gradient);
    }
    previous_gradient_ = gradient.clone();
    previous_loss_ = loss;
    t_ = first ? std::min(1.0, 1 / gradient.abs().sum().item<double>()) * o.lr() : o.lr();
    const double slope = product(gradient, direction_);
    if (slope > -o.tolerance_change()) break;

    int64_t calls = 0;
    if (searches) {
      Line line(*this, closure, direction_);
      const Point found = line.search({0, loss, gradient, slope}, t_, o.tolerance_change());
      t_ = found.t;
      loss = found.loss;
      gradient = found.gradient;
      calls = line.calls;
      move(t_, direction_);
    } else {
      move(t_, direction_);
      if (iteration != o.max_iter()) {
        loss = loss_of(closure).item<double>();
        gradient = flat_gradient();
        calls = 1;
      }
    }
    evaluations += calls;
    evaluations_ += calls;
    if (evaluations >= most_evaluations || largest(gradient) <= o.tolerance_grad() || largest(direction_.mul(t_)) <= o.tolerance_change() ||
        std::abs(loss - previous_loss_) < o.tolerance_change())
      break;
  }
  return first_loss;
}

void LBFGS::save(serialize::OutputArchive& archive) const {
  Optimizer::save(archive);
  serialize::OutputArchive own(archive.compilation_unit());
  own.write("n_iter", IValue(iterations_));
  own.write("func_evals", IValue(evaluations_));
  own.write("t", IValue(t_));
  own.write("H_diag", IValue(scale_));
  own.write("prev_loss", IValue(previous_loss_));
  if (direction_.defined()) {
    own.write("d", direction_, true);
    own.write("prev_flat_grad", previous_gradient_, true);
  }
  std::vector<Tensor> gradients, moves;
  for (const Change& change : history_) {
    gradients.push_back(change.gradient);
    moves.push_back(change.parameters);
  }
  if (!history_.empty()) {
    own.write("old_dirs", cresset::stack(gradients), true);
    own.write("old_stps", cresset::stack(moves), true);
  }
  archive.write("lbfgs", own);
}

void LBFGS::load(serialize::InputArchive& archive) {
  Optimizer::load(archive);
  serialize::InputArchive own;
  archive.read("lbfgs", own);
  const auto read = [&](const char* name) {
    IValue value;
    own.read(name, value);
    return value;
  };
  iterations_ = read("n_iter").toInt();
  evaluations_ = read("func_evals").toInt();
  t_ = read("t").toDouble();
  scale_ = read("H_diag").toDouble();
  previous_loss_ = read("prev_loss").toDouble();
  direction_ = previous_gradient_ = Tensor();
  own.try_read("d", direction_, true);
  own.try_read("prev_flat_grad", previous_gradient_, true);
  history_.clear();
  Tensor gradients, moves;
  if (!own.try_read("old_dirs", gradients, true)) return;
  own.read("old_stps", moves, true);
  CRESSET_CHECK(gradients.dim() == 2 && gradients.sizes() == moves.sizes(), "LBFGS: the file's history has sizes ", gradients.sizes(),
                " and ", moves.sizes(), ".");
  for (int64_t i = 0; i < gradients.size(0); ++i)
    history_.push_back({gradients[i].clone(), moves[i].clone(), 1 / product(gradients[i], moves[i])});
}

}  // namespace cresset::optim
