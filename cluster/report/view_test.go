package report
import ("testing";"os";"fmt";"github.com/gradwire/gradwire/cluster/record")
func TestView(t *testing.T){
 for n,labels:=range map[string][]string{"shares":shares(),"three":{"asp","bsp","ssp 3"},"one":{""}, "many":append(shares(),"a1","a long label with many letters 12345","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q","r")}{
  for _,k:=range []int{1,20}{
  s,c:=sample(labels,k,0.94)
  p,err:=Plots(fmt.Sprintf("/tmp/gw/figs/%s-%d",n,k),s,c)
  fmt.Println(p,err)
  if err:=Table(os.Stdout,s);err!=nil{t.Fatal(err)}
 }}
 _=record.Run{}
}
