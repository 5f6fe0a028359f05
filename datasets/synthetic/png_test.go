package synthetic_test
import ("testing";"image";"image/color";"image/png";"os";"fmt";"math/rand/v2"
"github.com/gradwire/gradwire/nn";"github.com/gradwire/gradwire/datasets/synthetic")
func TestPNG(t *testing.T){ s:=synthetic.Digits(1,200); im:=image.NewGray(image.Rect(0,0,28*20,28*10)); for i:=range 200 { for p,v:=range s.Row(i){ im.SetGray(i%20*28+p%28,i/20*28+p/28,color.Gray{uint8(v*255)})}}; f,_:=os.Create("/tmp/gw/d.png"); png.Encode(f,im); f.Close()
 train,test:=synthetic.Digits(1,2000),synthetic.Digits(2,2000)
 big:=synthetic.Digits(3,20000)
 for _,c:=range []struct{l []int; big bool}{{[]int{784,10},false},{[]int{784,64,10},false},{[]int{784,10},true},{[]int{784,64,10},true}} { tr:=train; if c.big {tr=big}
 m,_:=nn.NewMLP(c.l,nn.ReLU); p,g:=make([]float32,m.Params()),make([]float32,m.Params()); r:=rand.New(rand.NewPCG(1,1)); m.Init(p,r); w:=m.NewWorkspace(32)
 for e:=range 20 { for i:=0;i+32<=tr.Len();i+=32 { w.Gradient(p,g,nn.Batch{X:tr.X[i*784:(i+32)*784],Y:tr.Y[i:i+32]}); for j:=range p{p[j]-=.05*g[j]}}; if e==0||e==4||e==19 { _,k:=w.Evaluate(p,nn.Batch{X:test.X,Y:test.Y}); fmt.Println("dig",c.l,c.big,e+1,float64(k)/2000)}}}
}
func BenchmarkDigits(b *testing.B) { b.ReportAllocs(); for b.Loop() { synthetic.Digits(1, 1000) } }
