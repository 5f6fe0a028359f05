package kernel

// Axpy computes z = alpha·x + y. z may be x or y. It panics if the three differ in length.
func Axpy(z []float32, alpha float32, x, y []float32) {
	if len(x) != len(y) || len(x) != len(z) {
		panic(badLength)
	}
	switch {
	case len(x) == 0:
	case active == portable:
		axpyPortable(alpha, x, y, z)
	default:
		axpy(alpha, &x[0], &y[0], &z[0], len(x))
	}
}

// Scal computes x *= alpha.
func Scal(alpha float32, x []float32) {
	switch {
	case len(x) == 0:
	case active == portable:
		scalPortable(alpha, x)
	default:
		scal(alpha, &x[0], len(x))
	}
}

// Sum computes z = alpha·(x + y), rounding the sum before it is multiplied. z may be x or y. It
// panics if the three differ in length.
func Sum(z []float32, alpha float32, x, y []float32) {
	if len(x) != len(y) || len(x) != len(z) {
		panic(badLength)
	}
	switch {
	case len(x) == 0:
	case active == portable:
		sumPortable(alpha, x, y, z)
	default:
		sum(alpha, &x[0], &y[0], &z[0], len(x))
	}
}

// Axpby computes z = alpha·x + beta·y, rounding both products before they are added. z may be x or
// y. It panics if the three differ in length.
func Axpby(z []float32, alpha float32, x []float32, beta float32, y []float32) {
	if len(x) != len(y) || len(x) != len(z) {
		panic(badLength)
	}
	switch {
	case len(x) == 0:
	case active == portable:
		axpbyPortable(alpha, beta, x, y, z)
	default:
		axpby(alpha, beta, &x[0], &y[0], &z[0], len(x))
	}
}

// Rectify sets to zero the elements of y at whose places x is negative or zero, and leaves those
// where x is positive or NaN: Rectify(z, z) is ReLU, Rectify(d, h) takes the gradient d back
// through it, h being its value or its argument. It panics if the two differ in length.
func Rectify(y, x []float32) {
	if len(x) != len(y) {
		panic(badLength)
	}
	if n := len(x) &^ 7; active != portable && n > 0 {
		rectify(&y[0], &x[0], n)
		x, y = x[n:], y[n:]
	}
	rectifyPortable(y, x)
}

// CopyRows copies rows of the given width, from rows that are step apart to rows that are pitch
// apart. It panics if a slice is too short or a row longer than what it is apart from the next.
func CopyRows(to []float32, pitch int, from []float32, step, rows, width int) {
	if rows < 1 || width < 1 {
		return
	}
	if pitch < width || step < width {
		panic(badSize)
	}
	if len(to) < (rows-1)*pitch+width || len(from) < (rows-1)*step+width {
		panic(badLength)
	}
	if width == 16 || width == 32 {
		copySixteens(to, pitch, from, step, rows, width)
		return
	}
	for i := range rows {
		copy(to[i*pitch:][:width], from[i*step:])
	}
}

// TransposeMargin is how many elements [Transpose] and packing may write behind the last one.
const TransposeMargin = 8

// Transpose copies an m×n matrix, whose rows are step apart, so that its columns become rows pitch
// apart. It may write up to 8 elements behind each of these, which are of no use then, and up to
// TransposeMargin behind the last. It panics if a slice is too short.
func Transpose(to []float32, pitch int, from []float32, step, m, n int) {
	if active == portable {
		transposePortable(to, pitch, from, step, m, n)
	} else if m > 0 && n > 0 {
		transpose(to, pitch, from, step, m, n)
	}
}
