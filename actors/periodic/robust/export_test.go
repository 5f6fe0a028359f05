package robust

// Nearest is Bulyan's inner mean.
var Nearest = nearest
