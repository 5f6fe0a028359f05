package synthetic

// point is a position: in strokes within the unit square, y downward; on the
// canvas in pixels.
type point struct{ x, y float64 }

// stroke is one movement of the pen through its points: along a Catmull-Rom
// curve if it is round, straight from one to the next otherwise.
type stroke struct {
	round  bool
	points []point
}

func curve(points ...point) stroke { return stroke{true, points} }
func line(points ...point) stroke  { return stroke{false, points} }

// lowerBow closes the threes.
var lowerBow = curve(point{0.42, 0.47}, point{0.7, 0.54}, point{0.8, 0.74}, point{0.6, 0.93}, point{0.2, 0.88})

// styles are the ways in which people write each digit.
var styles = [10][][]stroke{
	{
		{curve(point{0.5, 0.05}, point{0.25, 0.2}, point{0.18, 0.5}, point{0.25, 0.8}, point{0.5, 0.95},
			point{0.75, 0.8}, point{0.82, 0.5}, point{0.75, 0.2}, point{0.5, 0.05})},
		{curve(point{0.6, 0.07}, point{0.36, 0.2}, point{0.28, 0.55}, point{0.36, 0.88}, point{0.52, 0.93},
			point{0.68, 0.75}, point{0.72, 0.4}, point{0.6, 0.1}, point{0.45, 0.12})},
	},
	{
		{line(point{0.5, 0.05}, point{0.5, 0.95})},
		{line(point{0.3, 0.27}, point{0.52, 0.05}, point{0.52, 0.95})},
		{line(point{0.3, 0.25}, point{0.5, 0.05}, point{0.5, 0.94}), line(point{0.25, 0.94}, point{0.75, 0.94})},
	},
	{
		{curve(point{0.2, 0.25}, point{0.35, 0.08}, point{0.6, 0.06}, point{0.78, 0.22}, point{0.7, 0.45},
			point{0.45, 0.7}, point{0.2, 0.93}), line(point{0.2, 0.93}, point{0.84, 0.92})},
		{curve(point{0.22, 0.2}, point{0.5, 0.05}, point{0.74, 0.2}, point{0.66, 0.5}, point{0.4, 0.82},
			point{0.22, 0.88}, point{0.26, 0.72}, point{0.5, 0.82}, point{0.84, 0.93})},
	},
	{
		{curve(point{0.2, 0.12}, point{0.5, 0.05}, point{0.75, 0.2}, point{0.66, 0.4}, point{0.42, 0.47}), lowerBow},
		{line(point{0.2, 0.07}, point{0.78, 0.07}, point{0.42, 0.45}), lowerBow},
	},
	{
		{line(point{0.6, 0.05}, point{0.15, 0.65}, point{0.87, 0.65}), line(point{0.64, 0.35}, point{0.62, 0.95})},
		{line(point{0.22, 0.06}, point{0.2, 0.5}, point{0.78, 0.5}), line(point{0.76, 0.05}, point{0.72, 0.95})},
		{curve(point{0.3, 0.05}, point{0.22, 0.3}, point{0.25, 0.5}, point{0.5, 0.54}, point{0.74, 0.42}),
			line(point{0.76, 0.1}, point{0.68, 0.95})},
	},
	{
		{line(point{0.78, 0.06}, point{0.3, 0.07}, point{0.25, 0.45}),
			curve(point{0.25, 0.45}, point{0.55, 0.38}, point{0.8, 0.58}, point{0.72, 0.85}, point{0.45, 0.95},
				point{0.18, 0.86})},
		{curve(point{0.74, 0.08}, point{0.42, 0.1}, point{0.3, 0.32}, point{0.5, 0.45}, point{0.7, 0.62},
			point{0.62, 0.88}, point{0.2, 0.92})},
	},
	{
		{curve(point{0.7, 0.06}, point{0.4, 0.25}, point{0.22, 0.6}, point{0.3, 0.88}, point{0.55, 0.95},
			point{0.78, 0.78}, point{0.7, 0.55}, point{0.45, 0.5}, point{0.25, 0.68})},
		{curve(point{0.45, 0.05}, point{0.32, 0.4}, point{0.28, 0.75}, point{0.45, 0.94}, point{0.66, 0.85},
			point{0.64, 0.66}, point{0.46, 0.62}, point{0.3, 0.75})},
	},
	{
		{line(point{0.18, 0.08}, point{0.82, 0.08}, point{0.42, 0.95})},
		{line(point{0.18, 0.1}, point{0.8, 0.07}, point{0.46, 0.95}), line(point{0.34, 0.5}, point{0.76, 0.5})},
		{curve(point{0.2, 0.2}, point{0.4, 0.1}, point{0.76, 0.1}, point{0.62, 0.42}, point{0.52, 0.7},
			point{0.5, 0.95})},
	},
	{
		{curve(point{0.5, 0.48}, point{0.26, 0.3}, point{0.35, 0.08}, point{0.65, 0.08}, point{0.74, 0.3},
			point{0.5, 0.48}, point{0.22, 0.72}, point{0.35, 0.94}, point{0.65, 0.94}, point{0.78, 0.72},
			point{0.5, 0.48})},
		{curve(point{0.72, 0.15}, point{0.45, 0.06}, point{0.3, 0.25}, point{0.5, 0.46}, point{0.7, 0.7},
			point{0.52, 0.94}, point{0.3, 0.8}, point{0.5, 0.5}, point{0.72, 0.15})},
	},
	{
		{curve(point{0.75, 0.28}, point{0.55, 0.07}, point{0.28, 0.15}, point{0.22, 0.38}, point{0.45, 0.52},
			point{0.7, 0.42}, point{0.75, 0.28}), curve(point{0.75, 0.28}, point{0.72, 0.6}, point{0.58, 0.95})},
		{curve(point{0.7, 0.16}, point{0.45, 0.08}, point{0.3, 0.28}, point{0.46, 0.48}, point{0.68, 0.36},
			point{0.7, 0.16}), line(point{0.7, 0.14}, point{0.68, 0.95})},
	},
}
